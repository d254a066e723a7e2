#include "inspect/ablation.h"

#include <algorithm>
#include <utility>

namespace qkv {

Ablation::Ablation(const LoadedModel& model, Evaluate evaluate)
    : evaluate_(std::move(evaluate)), components_(qkv::components(*model.network)) {
  require<UserError>(!components_.empty(),
                     "the model has no attention heads or feed-forward blocks to ablate; take a "
                     "transformer");
  for (const Component& component : components_)
    if (std::ranges::find(sums_, component.activation, &TokenSum::activation) == sums_.end())
      sums_.push_back({component.activation, {}});
  const Hook collect = [&](const Module& module, std::string_view name, Tensor value) {
    const auto found = std::ranges::find(sums_, Activation{&module, name}, &TokenSum::activation);
    if (found == sums_.end()) return value;
    const Tensor total = sum(value.to(DType::float64), {0, 1});
    found->sum = found->sum ? found->sum + total : total;
    found->tokens += value.dim(0) * value.dim(1);
    return value;
  };
  evaluate_({.hook = &collect, .one_by_one = true});
  require<UserError>(sums_.front().tokens > 0, "the data have no examples to measure on");
}

Evaluation Ablation::without(const std::vector<Component>& ablated, AblationKind kind) const {
  std::vector<Replacement> replacements;
  for (const Component& component : ablated) {
    const auto [activation, sum, tokens] =
        *std::ranges::find(sums_, component.activation, &TokenSum::activation);
    const Tensor mean = (sum / static_cast<double>(tokens)).to(DType::float32);
    replacements.push_back(
        {activation, component.mask, kind == AblationKind::mean ? mean : Tensor::scalar(0)});
  }
  const Hook hook = hook_of(std::move(replacements));
  return evaluate_({.hook = &hook});
}

}  // namespace qkv
