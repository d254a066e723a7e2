#include "inspect/loss_gradients.h"

#include <algorithm>
#include <map>

#include "inspect/weight_statistics.h"

namespace qkv {
namespace {

/// The static vectors of the tokens that forward passes read, each a parameter of its own: a word
/// that occurs twice has two gradients.
class StaticVectors {
 public:
  /// A pass reads `texts` texts one after the other.
  StaticVectors(const Model& model, std::size_t texts) : model_(&model), texts_(texts) {}

  /// Takes the vectors out of the graph of the table. This object must outlive it.
  Hook hook() {
    return [this](const Module& module, std::string_view name, Tensor value) {
      if (&module != model_ || name != "static") return value;
      return read_.emplace_back(value.detach()).value();
    };
  }
  /// By the vectors of the text of that number in all passes, [T, D].
  Tensor gradient(const Gradients& gradients, std::size_t text) const {
    Tensor total = Tensor::zeros(read_[text].shape(), read_[text].value().dtype());
    for (std::size_t i = text; i < read_.size(); i += texts_)
      if (gradients.has(read_[i])) total = total + gradients.of(read_[i]);
    return total.with_shape({total.dim(1), total.dim(2)});
  }

 private:
  const Model* model_;
  std::size_t texts_;
  std::vector<Parameter> read_;
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

/// The gradient of the embedding table [V, D] from those of the vectors [T, D] of the tokens that
/// were read: one that occurs twice has the sum.
Tensor table_gradient(const Tensor& vectors, const std::vector<std::int32_t>& read,
                      const Shape& table) {
  const Index width = table[1];
  std::vector<double> sum(static_cast<std::size_t>(table.size()));
  const auto values = vectors.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Index word = static_cast<Index>(i) / width, column = static_cast<Index>(i) % width;
    const Index row = read[static_cast<std::size_t>(word)];
    sum[static_cast<std::size_t>(row * width + column)] += values[i];
  }
  return Tensor::from(sum, table, vectors.dtype());
}

std::vector<double> row_norms(const Tensor& matrix) {
  std::vector<double> norms;
  for (Index i = 0; i < matrix.dim(0); ++i)
    norms.push_back(statistics(slice(matrix, 0, i, i + 1)).norm);
  return norms;
}

}  // namespace

LossGradients loss_gradients(const LoadedModel& trained, const LabelledText& text) {
  const Parameter& table = trained.network->model->embedding_table();
  const auto& written = text.sentence.written;
  StaticVectors vectors(*trained.network->model, written ? 2 : 1);
  const Tensor loss = loss_of(trained, text, vectors.hook());
  const Gradients gradients = gradients_of(loss);
  const Tensor words = vectors.gradient(gradients, 0);
  Tensor by_table = table_gradient(words, text.sentence.ids, table.shape());
  LossGradients result{loss.item(), row_norms(words), {}, {}};
  if (written) {
    const Tensor inputs = vectors.gradient(gradients, 1);
    by_table = by_table + table_gradient(inputs, written->input_ids, table.shape());
    result.inputs = row_norms(inputs);
  }
  if (gradients.has(table)) by_table = by_table + gradients.of(table);  // as the output layer
  for (const auto& [path, parameter] : parameters(*trained.network))
    if (parameter == &table)
      result.parameters.emplace_back(path, by_table);
    else if (gradients.has(*parameter))
      result.parameters.emplace_back(path, gradients.of(*parameter));
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
      auto& at =
          distances.try_emplace(distance, MeanGradients::AtDistance{distance, 0, 0}).first->second;
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
  mean.distances.reserve(distances.size());
  for (auto& [distance, at] : distances) {
    at.norm /= static_cast<double>(at.texts);
    mean.distances.push_back(at);
  }
  return mean;
}

}  // namespace qkv
