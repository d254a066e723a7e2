#include "inspect/patching.h"

#include <fmt/ranges.h>

namespace qkv {
namespace {

std::string text_of(const Sentence& sentence) {
  return fmt::format("{}", fmt::join(sentence.words, " "));
}

/// Rows without results.
Patching empty_rows(Network& network, Index width) {
  const auto stacks = stacks_of(network);
  require<UserError>(stacks.size() == 1,
                     "the model is no single stack of attention blocks; take a model.kind "
                     "\"encoder\" or \"decoder\"");
  const Tensor all = range_mask(0, width, width);
  Patching rows;
  const Transformer& stack = *stacks.front().second;
  const auto states = residual_states(stack);
  for (Index i = 0; i < std::ssize(states); ++i) {
    const bool last = i + 1 == std::ssize(states);
    rows.residual.push_back(
        {last ? fmt::format("after layer {}", i - 1) : fmt::format("before layer {}", i), i, -1,
         states[static_cast<std::size_t>(i)].activation, all});
  }
  for (Index i = 0; i < std::ssize(stack.layers); ++i) {
    const TransformerBlock& block = stack.layers[static_cast<std::size_t>(i)];
    const std::string label = fmt::format("layer {}", i);
    rows.attention.push_back({label, i, -1, {&block.attention, "output"}, all});
    if (block.feed_forward)
      rows.feed_forward.push_back({label, i, -1, {&*block.feed_forward, "output"}, all});
  }
  for (const Component& component : components(network))
    if (component.kind == ComponentKind::head)
      rows.heads.push_back(
          {component.label, component.layer, component.head, component.activation, component.mask});
  return rows;
}

/// The logit difference of one pair.
class LogitDifference {
 public:
  LogitDifference(const LoadedModel& trained, const PatchPair& pair)
      : trained_(trained),
        pair_(pair),
        clean_(explain(trained, pair.clean, pair.clean_index)),
        corrupt_(explain(trained, pair.corrupt, pair.corrupt_index).scores.logits) {
    require<UserError>(static_cast<bool>(corrupt_),
                       "the model has no answers to choose from, and so no logits to recover; take "
                       "one of another task than \"translate\" and \"static-embedding\"");
    clean_answer_ = argmax(clean_.scores.logits, 0).data()[0];
    corrupt_answer_ = argmax(corrupt_, 0).data()[0];
    require<UserError>(clean_answer_ != corrupt_answer_,
                       "the model answers {} to both \"{}\" and \"{}\"; take texts with different "
                       "answers",
                       clean_.scores.choices[static_cast<std::size_t>(clean_answer_)],
                       text_of(pair.clean), text_of(pair.corrupt));
  }

  double clean() const { return difference(clean_.scores.logits); }
  double corrupt() const { return difference(corrupt_); }
  /// The difference of the corrupt text with the clean one's activation where the mask is 1.
  double patched(const Activation& activation, const Tensor& mask) const {
    const Tensor value = clean_.recorder.at(*activation.module, activation.name);
    return difference(
        scores_after(trained_, pair_.corrupt, pair_.corrupt_index, {{activation, mask, value}})
            .logits);
  }

 private:
  double difference(const Tensor& logits) const {
    const auto values = logits.values();
    return values[static_cast<std::size_t>(clean_answer_)] -
           values[static_cast<std::size_t>(corrupt_answer_)];
  }

  const LoadedModel& trained_;
  const PatchPair& pair_;
  Explanation clean_;
  Tensor corrupt_;
  Index clean_answer_ = 0, corrupt_answer_ = 0;
};

template <class F>
void for_each_patched_row(Patching& patching, F f) {
  for (auto* rows :
       {&patching.residual, &patching.attention, &patching.feed_forward, &patching.heads})
    for (PatchedRow& row : *rows) f(row);
}

/// Adds the logit differences of a pair.
void add_pair(Patching& patching, const LogitDifference& pair, Index time) {
  patching.clean += pair.clean();
  patching.corrupt += pair.corrupt();
  ++patching.pairs;
  for_each_patched_row(patching, [&](PatchedRow& row) {
    row.positions.resize(static_cast<std::size_t>(time));
    for (Index t = 0; t < time; ++t) {
      const Tensor position = reshape(range_mask(t, t + 1, time), {time, 1});
      row.positions[static_cast<std::size_t>(t)] +=
          pair.patched(row.activation, position * row.mask);
    }
    row.all += pair.patched(row.activation, row.mask);
  });
}

}  // namespace

Patching patched(const LoadedModel& trained, const std::vector<PatchPair>& pairs) {
  const NoGrad no_grad;
  Patching patching =
      empty_rows(*trained.network, trained.network->model->embedding_table().shape()[1]);
  require<UserError>(!pairs.empty(), "there are no pairs of texts");
  const std::size_t time = pairs.front().clean.ids.size();
  for (const PatchPair& pair : pairs) {
    for (const Sentence* sentence : {&pair.clean, &pair.corrupt})
      require<UserError>(sentence->ids.size() == time,
                         "\"{}\" has {} tokens and \"{}\" has {}; patching goes from position to "
                         "position, so take texts of one length",
                         text_of(*sentence), sentence->ids.size(), text_of(pairs.front().clean),
                         time);
    add_pair(patching, LogitDifference(trained, pair), static_cast<Index>(time));
  }
  const auto count = static_cast<double>(patching.pairs);
  patching.clean /= count;
  patching.corrupt /= count;
  const auto recovered = [&](double sum) {
    return (sum / count - patching.corrupt) / (patching.clean - patching.corrupt);
  };
  for_each_patched_row(patching, [&](PatchedRow& row) {
    row.all = recovered(row.all);
    for (double& value : row.positions) value = recovered(value);
  });
  return patching;
}

}  // namespace qkv
