#include "inspect/intervention.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace qkv {
namespace {

void shuffle_queries(Network& network) {
  bool found = false;
  Random random(0, Purpose::testing);
  for (const auto& [path, parameter] : parameters(network)) {
    if (parameter->role() != Role::query) continue;
    found = true;
    const auto values = parameter->value().values();
    std::vector<double> shuffled;
    shuffled.reserve(values.size());
    for (const Index i : random.next().permutation(std::ssize(values)))
      shuffled.push_back(values[static_cast<std::size_t>(i)]);
    parameter->assign(Tensor::from(shuffled, parameter->shape(), parameter->value().dtype()));
  }
  require<UserError>(found, "shuffled-queries: the model has no W_q");
}

bool is_word_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

LoadedModel intervened(const LoadedModel& model, Intervention intervention) {
  ModelOptions options = model.config.model;
  if (intervention == Intervention::without_positions) options.position = PositionKind::none;
  if (intervention == Intervention::uniform_attention) options.attention = AttentionKind::uniform;
  LoadedModel changed = with_options(model, options);
  if (intervention == Intervention::shuffled_queries) shuffle_queries(*changed.network);
  return changed;
}

std::string swapped(std::string_view text, std::string_view a, std::string_view b) {
  std::string result;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), is_word_byte);
    const std::string_view word(at, end);
    result += word == a ? b : word == b ? a : word;
    at = std::find_if(end, text.end(), is_word_byte);
    result.append(end, at);
  }
  return result;
}

Hook hook_of(std::vector<Replacement> replacements) {
  return [replacements = std::move(replacements)](const Module& module, std::string_view name,
                                                  Tensor value) {
    for (const auto& [activation, mask, replacement] : replacements)
      if (activation == Activation{&module, name}) value = where(mask, replacement, value);
    return value;
  };
}

Scores scores_after(const LoadedModel& model, const Sentence& sentence, Index index,
                    std::vector<Replacement> replacements) {
  const Hook hook = hook_of(std::move(replacements));
  Context context({.hook = &hook});
  return model.task->scores(*model.network, sentence, index, context);
}

Tensor recorded_vectors(const Recorder& recorder, const Activation& activation) {
  const Tensor value = recorder.at(*activation.module, activation.name).to(DType::float64);
  return value.with_shape({value.dim(1), value.dim(2)});
}

Tensor range_mask(Index begin, Index end, Index size) {
  std::vector<double> mask(static_cast<std::size_t>(size));
  std::fill(mask.begin() + begin, mask.begin() + end, 1);
  return Tensor::from(mask, {size});
}

}  // namespace qkv
