#include "inspect/model_gradient_check.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "datasets/batch.h"

namespace qkv {
namespace {

/// For a loss of 1. Smaller gradients are compared by absolute error, as differences of a loss are
/// rounded to 1e-16 loss / h = 1e-11 loss.
constexpr double smallest_gradient = 1e-5;
constexpr Index most_examples = 4, most_tokens = 128;
/// Elements that are compared of each parameter; fewer where more operations would be needed, which
/// take some seconds.
constexpr double most_elements = 32, fewest_elements = 4, most_operations = 2e11;

/// Converts the network to float64 and adds noise to its parameters.
void move_from_zeros(Network& network, std::uint64_t seed) {
  convert(network, DType::float64);
  std::uint64_t step = 0;
  for (const auto& [path, parameter] : parameters(network)) {
    const Random random(seed, Purpose::testing, step++);
    if (parameter->frozen()) continue;
    std::uint64_t index = 0;
    for (double& value : parameter->mutable_data<double>())
      value += gradient_check_noise * random.normal(index++);
  }
}

Index tokens_of(const Task& task, std::span<const Index> examples) {
  return std::transform_reduce(examples.begin(), examples.end(), Index{0}, std::plus(),
                               [&](Index example) { return task.tokens(example); });
}

/// The first examples of the first step: the first of all, and more while there are few tokens.
std::vector<Index> first_examples(const LoadedModel& model) {
  const Index most = std::min(model.config.train.batch, most_examples);
  auto examples = BatchSampler(model.task->size(Split::train), most, model.config.seed).at(0);
  while (examples.size() > 1 && tokens_of(*model.task, examples) > most_tokens) examples.pop_back();
  return examples;
}

/// Each element takes two forward passes, of 2 operations a token and parameter.
Index affordable_elements(const LoadedModel& model, Index tokens, std::size_t parameters) {
  const double pass =
      2 * static_cast<double>(tokens) * static_cast<double>(parameter_count(*model.network));
  return static_cast<Index>(
      std::clamp(most_operations / (2 * pass * static_cast<double>(parameters)), fewest_elements,
                 most_elements));
}

}  // namespace

const GradientCheck& ModelGradientCheck::worst() const {
  return *std::ranges::max_element(parameters, {}, &GradientCheck::error);
}

ModelGradientCheck check_model_gradients(LoadedModel& model) {
  MemoryPool pool;
  const MemoryPool::Use use(pool);
  move_from_zeros(*model.network, model.config.seed);
  auto trained = parameters(*model.network);
  ModelGradientCheck result;
  std::erase_if(trained, [&](const NamedParameter& entry) {
    if (entry.parameter->frozen()) result.frozen.push_back(entry.path);
    return entry.parameter->frozen();
  });
  require<UserError>(!trained.empty(), "every parameter is frozen: there is no gradient to check");
  const auto examples = first_examples(model);
  const auto loss = [&] {
    Context context({.random = Random(model.config.seed, Purpose::dropout)});
    return model.task->loss(*model.network, examples, context).value;
  };
  result.examples = std::ssize(examples);
  result.loss = loss().item();
  result.parameters = check_each_gradient(
      trained, loss,
      {.scale = smallest_gradient * std::max(1.0, result.loss),
       .tolerance = result.tolerance,
       .elements = affordable_elements(model, tokens_of(*model.task, examples), trained.size()),
       .seed = model.config.seed});
  return result;
}

}  // namespace qkv
