#include "inspect/explain.h"

namespace qkv {
namespace {

/// The only sequence of a batch of one: [1, ...] -> [...].
Tensor alone(const Tensor& batch) {
  std::vector<Index> sizes(batch.shape().begin() + 1, batch.shape().end());
  return batch.with_shape(Shape(sizes));
}

/// Columns [head d, (head + 1) d) of [1, T, H d].
Tensor head_columns(const Tensor& x, Index head, Index width) {
  return alone(slice(x, 2, head * width, (head + 1) * width));
}

/// `record` is that of the module's weights.
std::vector<HeadSteps> heads_of(const Recorder& recorder, const Recorder::Record& record,
                                double scale) {
  const auto recorded = [&](std::string_view what) { return recorder.at(beside(record, what)); };
  const Tensor weights = alone(record.value), q = recorded("q"), k = recorded("k"),
               v = recorded("v"), mixed = recorded("mixed"),
               bias = recorder.has(beside(record, "bias")) ? alone(recorded("bias")) : Tensor();
  const Index heads = weights.dim(0), width = q.dim(2) / heads;
  std::vector<HeadSteps> steps;
  for (Index h = 0; h < heads; ++h) {
    HeadSteps head{.q = head_columns(q, h, width),
                   .k = head_columns(k, h, width),
                   .v = head_columns(v, h, width),
                   .scores = {},
                   .scaled = {},
                   .weights = alone(slice(weights, 0, h, h + 1)),
                   .mixed = head_columns(mixed, h, width)};
    head.scores = matmul(head.q, head.k, Transpose::second);
    head.scaled = head.scores * scale;
    if (bias) head.scaled = head.scaled + alone(slice(bias, 0, h, h + 1));
    steps.push_back(head);
  }
  return steps;
}

}  // namespace

Recorder recorded(const LoadedModel& trained, const Sentence& sentence,
                  const std::vector<Replacement>& replaced) {
  return explain(trained, sentence, 0, replaced).recorder;
}

Explanation explain(const LoadedModel& trained, const Sentence& sentence, Index index,
                    const std::vector<Replacement>& replaced) {
  const NoGrad no_grad;
  Explanation result{trained.config.model, sentence, index, Recorder(*trained.network), {}, {}};
  if (sentence.written && result.model.attention == AttentionKind::parameter_free)
    result.model.attention = AttentionKind::learned;  // of the decoder (layers/transformer.h)
  const Hook hook = hook_of(replaced);
  Context context({.recorder = &result.recorder, .hook = &hook});
  result.scores = trained.task->scores(*trained.network, sentence, index, context);
  if (result.scores.logits) result.probabilities = softmax(result.scores.logits);
  return result;
}

std::string beside(const Recorder::Record& record, std::string_view name) {
  return record.path.substr(0, record.path.size() - record.name.size()).append(name);
}

std::vector<AttentionSteps> attention_steps(const Recorder& recorder) {
  std::vector<AttentionSteps> steps;
  for (const Recorder::Record& record : recorder.all()) {
    if (record.name != "weights") continue;
    const auto recorded = [&](std::string_view name) { return recorder.at(beside(record, name)); };
    const double scale = recorded("scale").item();
    steps.push_back({record.module, recorded("cross").item() == 1, scale,
                     recorder.has(beside(record, "bias")), alone(recorded("mask")),
                     heads_of(recorder, record, scale)});
  }
  return steps;
}

}  // namespace qkv
