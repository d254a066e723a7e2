#include "inspect/ablation.h"

#include <algorithm>
#include <utility>

namespace qkv {
namespace {

/// Sums an activation over tokens.
struct TokenSum {
  Activation activation;
  Tensor sum;  ///< [D], float64
  Index tokens = 0;

  void add(const Tensor& value) {
    const Tensor total = qkv::sum(value.to(DType::float64), {0, 1});
    sum = sum ? sum + total : total;
    tokens += value.dim(0) * value.dim(1);
  }
};

}  // namespace

Ablation::Ablation(const LoadedModel& model, Evaluate evaluate)
    : evaluate_(std::move(evaluate)), components_(qkv::components(*model.network)) {
  require<UserError>(!components_.empty(),
                     "the model has no attention heads or feed-forward blocks to ablate; take a "
                     "transformer");
  std::vector<TokenSum> sums;
  for (const Component& component : components_)
    if (std::ranges::find(sums, component.activation, &TokenSum::activation) == sums.end())
      sums.push_back({component.activation, {}});
  const Hook collect = [&](const Module& module, std::string_view name, Tensor value) {
    const auto found = std::ranges::find(sums, Activation{&module, name}, &TokenSum::activation);
    if (found != sums.end()) found->add(value);
    return value;
  };
  evaluate_({.hook = &collect, .one_by_one = true});
  require<UserError>(sums.front().tokens > 0, "the data have no examples to measure on");
  for (const TokenSum& sum : sums)
    means_.emplace_back(sum.activation,
                        (sum.sum / static_cast<double>(sum.tokens)).to(DType::float32));
}

Tensor Ablation::mean_of(const Activation& activation) const {
  return std::ranges::find(means_, activation, &std::pair<Activation, Tensor>::first)->second;
}

Evaluation Ablation::without(const std::vector<Component>& ablated, AblationKind kind) const {
  std::vector<Replacement> replacements;
  replacements.reserve(ablated.size());
  for (const Component& component : ablated)
    replacements.push_back(
        {component.activation, component.mask,
         kind == AblationKind::mean ? mean_of(component.activation) : Tensor::scalar(0)});
  const Hook hook = hook_of(std::move(replacements));
  return evaluate_({.hook = &hook});
}

}  // namespace qkv
