#include "inspect/loss_gradients.h"

#include <algorithm>
#include <map>

namespace qkv {
namespace {

/// Adds a zero parameter to the static vectors of each text that a forward pass reads, whose
/// gradient is theirs: a word that occurs twice has two gradients.
class StaticVectors {
 public:
  explicit StaticVectors(const Model& model) : model_(&model) {}

  /// This object must outlive it.
  Hook hook() {
    return [this](const Module& module, std::string_view name, Tensor value) {
      if (&module != model_ || name != "static") return value;
      values_.push_back(value.detach().to(DType::float64));
      return value + added_.emplace_back(Tensor::zeros(value.shape(), value.dtype())).value();
    };
  }
  /// The norm of the gradient by each vector of the text of that number.
  std::vector<double> norms(const Gradients& gradients, std::size_t text) const {
    const Tensor gradient = gradient_of(gradients, text);
    return sqrt(sum(gradient * gradient, -1)).values();
  }
  /// Minus the product of each vector with its gradient.
  std::vector<double> contributions(const Gradients& gradients, std::size_t text) const {
    return sum(values_[text] * gradient_of(gradients, text) * -1.0, -1).values();
  }

 private:
  Tensor gradient_of(const Gradients& gradients, std::size_t text) const {
    const Parameter& added = added_[text];
    return (gradients.has(added) ? gradients.of(added) : added.value().detach()).to(DType::float64);
  }

  const Model* model_;
  std::vector<Tensor> values_;
  std::vector<Parameter> added_;
};

/// The text's answer among the choices, or the most probable choice where it has none.
Index answer(const Scores& scores, const LabelledText& text) {
  if (text.answer >= 0) return text.answer;
  require<UserError>(text.label.empty(), "the model does not know the label {}", text.label);
  const auto logits = scores.logits.values();
  return std::ranges::max_element(logits) - logits.begin();
}

/// The mean of the losses of the tokens that are written, from one pass.
Tensor output_loss(const LoadedModel& trained, const Sentence& sentence, const Hook& hook) {
  Tensor decoded;
  const Hook keeping = [&](const Module& module, std::string_view name, Tensor value) {
    value = hook(module, name, std::move(value));
    if (&module == trained.network->model.get() && name == "decoded") decoded = value;
    return value;
  };
  Context context({.hook = &keeping});
  trained.task->scores(*trained.network, sentence, 0, context);
  const auto& outputs = sentence.written->output_ids;
  const Index count = std::ssize(outputs);
  const Tensor logits = reshape(trained.network->logits(decoded), {count, -1});
  return cross_entropy(logits, Indices(outputs, {count}));
}

}  // namespace

Tensor answer_loss(const LoadedModel& trained, const LabelledText& text, const Hook& hook) {
  if (text.sentence.written) return output_loss(trained, text.sentence, hook);
  Context context({.hook = &hook});
  const Scores scores = trained.task->scores(*trained.network, text.sentence,
                                             std::max<Index>(text.index, 0), context);
  require<UserError>(static_cast<bool>(scores.logits),
                     "the model has no answers to choose from, and so no loss of a sentence; "
                     "take one of another task than \"static-embedding\"");
  const auto id = static_cast<std::int32_t>(answer(scores, text));
  return cross_entropy(reshape(scores.logits, {1, -1}), Indices({id}, {1}));
}

LossGradients loss_gradients(const LoadedModel& trained, const LabelledText& text) {
  StaticVectors vectors(*trained.network->model);
  const Tensor loss = answer_loss(trained, text, vectors.hook());
  const Gradients gradients = gradients_of(loss);
  LossGradients result{
      loss.item(), vectors.norms(gradients, 0), vectors.contributions(gradients, 0), {}, {}};
  if (text.sentence.written) result.inputs = vectors.norms(gradients, 1);
  for (const auto& [path, parameter] : parameters(*trained.network))
    if (gradients.has(*parameter)) result.parameters.emplace_back(path, gradients.of(*parameter));
  return result;
}

MeanGradients mean_gradients(const LoadedModel& trained, const std::vector<LabelledText>& texts,
                             ReadCallback& callback) {
  MeanGradients mean;
  std::map<Index, MeanGradients::AtDistance> distances;
  const double weight = 1 / static_cast<double>(texts.size());
  for (std::size_t t = 0; t < texts.size(); ++t) {
    callback.on_item("differentiating", t, texts.size());
    const LabelledText& text = texts[t];
    const LossGradients one = loss_gradients(trained, text);
    mean.loss += weight * one.loss;
    for (std::size_t i = 0; i < one.words.size(); ++i) {
      const Index distance = std::max<Index>(text.index, 0) - static_cast<Index>(i);
      auto& at = distances[distance];
      at.distance = distance;
      at.norm += one.words[i];
      ++at.texts;
    }
    for (std::size_t i = 0; i < one.parameters.size(); ++i) {
      const auto& [path, gradient] = one.parameters[i];
      if (i == mean.parameters.size())
        mean.parameters.emplace_back(path, gradient * weight);
      else
        mean.parameters[i].second = mean.parameters[i].second + gradient * weight;
    }
  }
  for (auto& [distance, at] : distances) {
    at.norm /= static_cast<double>(at.texts);
    mean.distances.push_back(at);
  }
  return mean;
}

}  // namespace qkv
