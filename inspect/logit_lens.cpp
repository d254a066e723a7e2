#include "inspect/logit_lens.h"

#include "inspect/components.h"

namespace qkv {

std::vector<LensState> logit_lens(const LoadedModel& trained, const Explanation& explanation) {
  const auto stacks = stacks_of(*trained.network);
  if (stacks.empty() || !explanation.scores.logits) return {};
  const NoGrad no_grad;
  const auto states = residual_states(*stacks.back().second);
  std::vector<LensState> lens;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Tensor state = explanation.recorder.at(*states[i].module, states[i].name);
    const Hook hook = hook_of({{states.back(), Tensor::scalar(1), state}});
    Context context({.hook = &hook});
    lens.push_back(
        {i == 0 ? "input" : fmt::format("layer {}", i - 1),
         trained.task->scores(*trained.network, explanation.sentence, explanation.index, context)});
  }
  return lens;
}

}  // namespace qkv
