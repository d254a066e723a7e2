#include "inspect/logit_attribution.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

/// The residual stream of a sentence as a sum of vectors [T, D], float64.
class ResidualTerms {
 public:
  struct Term {
    std::string label;
    std::optional<Component> component;
    Tensor value;
  };

  ResidualTerms(const LoadedModel& trained, const Recorder& recorder) : recorder_(recorder) {
    const auto [name, last] = stacks_of(*trained.network).back();
    const Transformer& stack = *last;
    for (const Component& component : components(*trained.network))
      if (component.stack == name) components_.push_back(component);
    const Model& model = *trained.network->model;
    add("embedding", recorded({&model, "static"}));
    if (recorder_.has("typed"))
      add("token type", recorded({&model, "typed"}) - recorded({&model, "static"}));
    if (recorder_.has("position")) add("position", recorded({&model, "position"}));
    for (const auto& [path, norm] : modules<LayerNorm>(*trained.network))
      if (path == "input_norm") normalize(*norm, "norm of embeddings");
    for (std::size_t i = 0; i < stack.layers.size(); ++i)
      add_block(stack.layers[i], static_cast<Index>(i));
    if (stack.norm) normalize(*stack.norm, "last norm");
  }

  const std::vector<Term>& terms() const { return terms_; }

 private:
  Tensor recorded(const Activation& activation) const {
    return recorded_vectors(recorder_, activation);
  }

  void add(std::string label, const Tensor& value, std::optional<Component> component = {}) {
    terms_.push_back({std::move(label), std::move(component), value});
  }

  void add_bias(std::string label, const Parameter& bias) {
    add(std::move(label), expand(bias.value().to(DType::float64), terms_.front().value.shape()));
  }

  void add_block(const TransformerBlock& block, Index layer) {
    const bool post = block.norm == NormKind::post;
    const std::string name = fmt::format("layer {}, ", layer);
    if (!block.residual) terms_.clear();
    add_attention(block.attention, ComponentKind::head, layer, name);
    if (post && block.norm_1) normalize(*block.norm_1, name + "norm of attention");
    if (block.cross_attention)
      add_attention(*block.cross_attention, ComponentKind::cross_head, layer,
                    name + "cross-attention, ");
    if (post && block.norm_cross) normalize(*block.norm_cross, name + "norm of cross-attention");
    if (!block.feed_forward) return;
    const auto is_this = [&](const Component& component) {
      return component.layer == layer && component.kind == ComponentKind::feed_forward;
    };
    const Component& component = *std::ranges::find_if(components_, is_this);
    add(component.label, recorded(component.activation), component);
    if (post && block.norm_2) normalize(*block.norm_2, name + "norm of feed-forward");
  }

  void add_attention(const MultiHeadAttention& attention, ComponentKind kind, Index layer,
                     const std::string& name) {
    for (const Component& component : components_)
      if (component.layer == layer && component.kind == kind)
        add(component.label, written(attention, component), component);
    if (attention.w_o && attention.w_o->bias) add_bias(name + "bias of W_o", *attention.w_o->bias);
  }

  /// The output of a head in the residual stream: its columns of W_o times its weighted sums.
  Tensor written(const MultiHeadAttention& attention, const Component& head) const {
    const Tensor mixed = recorded(head.activation) * head.mask.to(DType::float64);
    if (!attention.w_o) return mixed;
    return matmul(mixed, attention.w_o->weight.value().to(DType::float64), Transpose::second);
  }

  /// The norm of the sum, by term; its bias is a term of its own.
  void normalize(const LayerNorm& norm, const std::string& label) {
    Tensor total;
    for (const Term& term : terms_) total = total ? total + term.value : term.value;
    const Tensor deviation = sqrt(variance(total, -1, true) + norm.epsilon);
    const Tensor gain = norm.weight.value().to(DType::float64);
    for (Term& term : terms_)
      term.value = (term.value - mean(term.value, -1, true)) / deviation * gain;
    if (norm.bias) add_bias(label + ", bias", *norm.bias);
  }

  const Recorder& recorder_;
  std::vector<Component> components_;
  std::vector<Term> terms_;
};

/// A logit as a linear function of the contextual vectors.
struct LinearLogit {
  Tensor gradient;  ///< [T, D], float64
  double bias;
};

/// None when it is not linear.
std::optional<LinearLogit> linear_logit(const LoadedModel& trained, const Explanation& explanation,
                                        Index choice) {
  constexpr double tolerance = 1e-4;
  const Activation last = {trained.network->model.get(),
                           explanation.sentence.written ? "decoded" : "contextual"};
  const Parameter vectors(explanation.recorder.at(*last.module, last.name));
  const auto logit_at = [&](const Tensor& y) {
    const Scores scores = scores_after(trained, explanation.sentence, explanation.index,
                                       {{last, Tensor::scalar(1), y}});
    return sum(slice(scores.logits, 0, choice, choice + 1));
  };
  const Tensor logit = logit_at(vectors.value());
  const double value = logit.item(),
               bias = logit_at(Tensor::zeros(vectors.shape(), vectors.value().dtype())).item();
  const Tensor gradient = gradients_of(logit).of(vectors);
  const double linear = sum(gradient * vectors.value().detach()).item();
  if (!(std::abs(bias + linear - value) <= tolerance * std::max(1.0, std::abs(value)))) return {};
  return LinearLogit{gradient.to(DType::float64).with_shape({gradient.dim(1), gradient.dim(2)}),
                     bias};
}

}  // namespace

std::optional<LogitAttribution> logit_attribution(const LoadedModel& trained,
                                                  const Explanation& explanation) {
  if (stacks_of(*trained.network).empty() || explanation.scores.choices.size() < 2) return {};
  const auto best = topk(explanation.scores.logits, 2).indices;
  const Index answer = best.data()[0], runner_up = best.data()[1];
  const auto logit = linear_logit(trained, explanation, answer),
             other = linear_logit(trained, explanation, runner_up);
  if (!logit || !other) return {};
  LogitAttribution result{answer, runner_up, {}};
  const auto dot = [](const Tensor& a, const Tensor& b) { return sum(a * b).item(); };
  const ResidualTerms stream(trained, explanation.recorder);
  for (const auto& [label, component, value] : stream.terms()) {
    const double added = dot(logit->gradient, value);
    result.parts.push_back({label, component, added, added - dot(other->gradient, value)});
  }
  result.parts.push_back({"output layer, bias", {}, logit->bias, logit->bias - other->bias});
  return result;
}

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
