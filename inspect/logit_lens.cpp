#include "inspect/logit_lens.h"

#include "inspect/components.h"

namespace qkv {

std::vector<LensState> logit_lens(const LoadedModel& trained, const Explanation& explanation) {
  const auto stacks = stacks_of(*trained.network);
  if (stacks.empty() || !explanation.scores.logits) return {};
  const NoGrad no_grad;
  const auto states = residual_states(*stacks.back().second);
  std::vector<LensState> lens;
  for (const auto& [label, activation] : states) {
    const Tensor state = explanation.recorder.at(*activation.module, activation.name);
    lens.push_back({label, scores_after(trained, explanation.sentence, explanation.index,
                                        {{states.back().activation, Tensor::scalar(1), state}})});
  }
  return lens;
}

}  // namespace qkv
