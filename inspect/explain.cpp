#include "inspect/explain.h"

#include <algorithm>
#include <optional>

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

/// Whether a norm comes after its part of the block, as it was recorded.
bool normalises_after(const Recorder& recorder, const std::string& norm) {
  const std::string block = norm.substr(0, norm.rfind(".norm_"));
  const std::string part =
      norm.ends_with("norm_1.output") ? ".attention.output" : ".feed_forward.output";
  const auto place = [&](const std::string& path) {
    return std::ranges::find(recorder.all(), path, &Recorder::Record::path);
  };
  return place(block + part) < place(norm);
}

/// What a block's parts read and give differs from the table below where it normalises after them,
/// or, with parameter-free attention, neither normalises nor projects.
std::optional<Formula> formula_by_block(const Recorder& recorder, const std::string& path) {
  if (ends_with_part(path, "norm_1.output") && normalises_after(recorder, path))
    return Formula{"x_i", "norm(x_i + o_i)", "residual and norm"};
  if (ends_with_part(path, "norm_2.output") && normalises_after(recorder, path))
    return Formula{"x_i", "norm(x_i + f_i)", "residual and norm"};
  const std::string block = path.substr(0, path.rfind('.', path.rfind('.') - 1));
  if (ends_with_part(path, "attention.output") && !recorder.has(block + ".norm_1.output"))
    return Formula{"o_i", "z_i", "no output projection"};
  if (ends_with_part(path, "feed_forward.output") &&
      normalises_after(recorder, block + ".norm_2.output"))
    return Formula{"f_i", "W_2 gelu(W_1 x_i + b_1) + b_2", "feed-forward"};
  return std::nullopt;
}

}  // namespace

Recorder recorded(const Trained& trained, const Sentence& sentence) {
  return explain(trained, sentence, 0).recorder;
}

Explanation explain(const Trained& trained, const Sentence& sentence, Index index) {
  const NoGrad no_grad;
  Explanation result{trained.config.model, sentence, index, Recorder(*trained.network), {}, {}};
  Context context({.recorder = &result.recorder});
  result.scores = trained.task->scores(*trained.network, sentence, index, context);
  if (result.scores.logits) result.probabilities = softmax(result.scores.logits);
  return result;
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
      {"position", {"p_i", "P_i", "position: row i of the table of positions"}},
      {"input", {"x_i", "e_i + p_i", "embedding + position"}},
      {"norm_1.output", {"h_i", "(x_i - mean(x_i)) / sqrt(var(x_i) + 1e-5) * g + b", "norm"}},
      {"attention.output", {"o_i", "W_o z_i + b_o", "output projection"}},
      {"attended", {"x'_i", "x_i + o_i", "residual"}},
      {"norm_2.output", {"h'_i", "(x'_i - mean(x'_i)) / sqrt(var(x'_i) + 1e-5) * g + b", "norm"}},
      {"feed_forward.output", {"f_i", "W_2 gelu(W_1 h'_i + b_1) + b_2", "feed-forward"}},
      {"norm_cross.output", {"h_i", "norm(x_i)", "norm"}},
      {"cross_attention.output", {"o_i", "W_o z_i + b_o", "output projection"}},
      {"informed", {"x'_i", "x'_i + o_i", "residual"}},
      {"norm.output", {"y_i", "(x_i - mean(x_i)) / sqrt(var(x_i) + 1e-5) * g + b", "last norm"}},
      {"contextual", {"y_i", "", "contextual vector"}}};
  if (const auto formula = formula_by_block(recorder, path)) return *formula;
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
