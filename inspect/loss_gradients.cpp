#include "inspect/loss_gradients.h"

#include <algorithm>
#include <map>

namespace qkv {
namespace {

/// Adds a zero parameter to the static vectors of each forward pass, whose gradient is theirs: a
/// word that occurs twice has two gradients.
class StaticVectors {
 public:
  /// A pass reads `texts` texts one after the other.
  StaticVectors(const Model& model, std::size_t texts) : model_(&model), texts_(texts) {}

  /// This object must outlive it.
  Hook hook() {
    return [this](const Module& module, std::string_view name, Tensor value) {
      if (&module != model_ || name != "static") return value;
      return value + added_.emplace_back(Tensor::zeros(value.shape(), value.dtype())).value();
    };
  }
  /// The norm of the gradient by each vector of the text of that number, over all passes.
  std::vector<double> norms(const Gradients& gradients, std::size_t text) const {
    Tensor total = added_[text].value().to(DType::float64).detach();
    for (std::size_t i = text; i < added_.size(); i += texts_)
      if (gradients.has(added_[i])) total = total + gradients.of(added_[i]).to(DType::float64);
    return sqrt(sum(total * total, -1)).values();
  }

 private:
  const Model* model_;
  std::size_t texts_;
  std::vector<Parameter> added_;
};

/// The text's answer among the choices, or the most probable choice where it has none.
Index answer(const Scores& scores, const LabelledText& text) {
  if (text.answer >= 0) return text.answer;
  require<UserError>(text.label.empty(), "the model does not know the label {}", text.label);
  const auto logits = scores.logits.values();
  return std::ranges::max_element(logits) - logits.begin();
}

/// The loss of one answer.
Tensor answer_loss(const Scores& scores, Index answer) {
  return cross_entropy(reshape(scores.logits, {1, -1}),
                       Indices({static_cast<std::int32_t>(answer)}, {1}));
}

/// The loss of the text's answer, or the mean of the losses of the tokens that are written.
Tensor loss_of(const LoadedModel& trained, const LabelledText& text, const Hook& hook) {
  const Sentence& sentence = text.sentence;
  Context context({.hook = &hook});
  const auto scores_of = [&](Index index) {
    Scores scores = trained.task->scores(*trained.network, sentence, index, context);
    require<UserError>(static_cast<bool>(scores.logits),
                       "the model has no answers to choose from, and so no loss of a sentence; "
                       "take one of another task than \"static-embedding\"");
    return scores;
  };
  if (!sentence.written) {
    const Scores scores = scores_of(std::max<Index>(text.index, 0));
    return answer_loss(scores, answer(scores, text));
  }
  const auto& outputs = sentence.written->output_ids;
  Tensor sum;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor loss = answer_loss(scores_of(static_cast<Index>(i)), outputs[i]);
    sum = sum ? sum + loss : loss;
  }
  return sum / static_cast<double>(outputs.size());
}

}  // namespace

LossGradients loss_gradients(const LoadedModel& trained, const LabelledText& text) {
  const bool has_inputs = text.sentence.written.has_value();
  StaticVectors vectors(*trained.network->model, has_inputs ? 2 : 1);
  const Tensor loss = loss_of(trained, text, vectors.hook());
  const Gradients gradients = gradients_of(loss);
  LossGradients result{loss.item(), vectors.norms(gradients, 0), {}, {}};
  if (has_inputs) result.inputs = vectors.norms(gradients, 1);
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
