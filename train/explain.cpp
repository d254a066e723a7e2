#include "train/explain.h"

#include <algorithm>

#include "datasets/batch.h"

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

std::vector<HeadSteps> heads_of(const Recorder& recorder, const std::string& path, double scale) {
  const auto recorded = [&](const std::string& what) { return recorder.at(path + "." + what); };
  const Tensor weights = alone(recorded("weights")), q = recorded("q"), k = recorded("k"),
               v = recorded("v"), mixed = recorded("mixed");
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
    steps.push_back(head);
  }
  return steps;
}

bool ends_with_part(const std::string& path, const std::string& part) {
  return path == part || path.ends_with("." + part);
}

}  // namespace

Recorder recorded(Network& network, const Sentence& sentence) {
  const NoGrad no_grad;
  Recorder recorder(network);
  Context context(&recorder);
  const std::vector<std::int32_t> ids[] = {sentence.ids};
  const TokenBatch batch = pad(ids);
  (*network.model)(batch.ids, batch.lengths, context);
  return recorder;
}

Explanation explain(Trained& trained, const Sentence& sentence, Index index) {
  const NoGrad no_grad;
  Explanation explanation{
      trained.config.model, sentence, index, recorded(*trained.network, sentence), {}, {}, {}};
  const Tensor contextual = explanation.recorder.at("contextual");
  const Indices row({static_cast<std::int32_t>(index)}, {1});
  const Tensor logits = trained.network->logits(select_rows(contextual, row));
  explanation.logits = alone(logits);
  explanation.probabilities = alone(softmax(logits));
  const auto vocabularies = trained.task->vocabularies();
  const auto labels = vocabularies.find("labels");
  explanation.labels =
      labels == vocabularies.end() ? trained.task->vocabulary().tokens() : labels->second;
  return explanation;
}

std::vector<AttentionSteps> attention_steps(const Recorder& recorder) {
  std::vector<AttentionSteps> steps;
  for (const auto& [path, value] : recorder.all()) {
    if (!path.ends_with(".weights")) continue;
    const std::string module = path.substr(0, path.rfind('.'));
    const double scale = recorder.at(module + ".scale").item();
    steps.push_back(
        {module, scale, alone(recorder.at(module + ".mask")), heads_of(recorder, module, scale)});
  }
  return steps;
}

Formula formula_of(const Recorder& recorder, const std::string& path) {
  static const std::vector<std::pair<std::string, Formula>> known = {
      {"static", {"e_i", "E[token_i]", "embedding: the word's row of the table"}},
      {"input", {"x_i", "e_i + p_i", "embedding + position"}},
      {"norm_1.output", {"h_i", "(x_i - mean(x_i)) / sqrt(var(x_i) + 1e-5) * g + b", "norm"}},
      {"attention.output", {"o_i", "W_o z_i + b_o", "output projection"}},
      {"attended", {"x'_i", "x_i + o_i", "residual"}},
      {"norm_2.output", {"h'_i", "(x'_i - mean(x'_i)) / sqrt(var(x'_i) + 1e-5) * g + b", "norm"}},
      {"feed_forward.output", {"f_i", "W_2 gelu(W_1 h'_i + b_1) + b_2", "feed-forward"}},
      {"norm.output", {"y_i", "(x_i - mean(x_i)) / sqrt(var(x_i) + 1e-5) * g + b", "last norm"}},
      {"contextual", {"y_i", "", "contextual vector"}}};
  const auto found = std::ranges::find_if(
      known, [&](const auto& entry) { return ends_with_part(path, entry.first); });
  if (found != known.end()) return found->second;
  const std::string name = path.substr(path.rfind('.') + 1);
  if (name != "output") return {name + "_i", "", ""};
  const std::string layer = path.substr(0, path.rfind('.'));
  if (recorder.has(layer + ".feed_forward.output")) return {"x_i", "x'_i + f_i", "residual"};
  if (recorder.has(layer + ".norm_1.output")) return {"x_i", "x_i + o_i", "residual"};
  if (recorder.has(layer + ".attention.output")) return {"x_i", "o_i", "what attention gives"};
  return {"y_i", "", "last vector"};
}

}  // namespace qkv
