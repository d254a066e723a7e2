#include "inspect/loss_gradients.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "inspect/weight_statistics.h"

namespace qkv {
namespace {

/// The tokens that a model reads: those of a sentence, then those of a text that it writes.
std::vector<std::int32_t> read_ids(const Sentence& sentence) {
  std::vector<std::int32_t> ids = sentence.ids;
  if (sentence.written)
    ids.insert(ids.end(), sentence.written->input_ids.begin(), sentence.written->input_ids.end());
  return ids;
}

/// While alive, row i of the network's embedding table [T, D] is the vector of token i of those
/// that it reads, so that a word which occurs twice has two gradients. An output layer that was the
/// table keeps all rows.
class OwnVectors {
 public:
  OwnVectors(Network& network, const std::vector<std::int32_t>& read)
      : network_(network), table_(table()), tied_(!network.head) {
    const Indices ids(read, {std::ssize(read)});
    const Tensor all_rows = table().value().detach();
    if (tied_) {
      network.head.emplace(all_rows.dim(1), all_rows.dim(0), unused_, false, Role::head);
      network.head->weight.assign(all_rows);
    }
    table() = Parameter(embedding(all_rows, ids), Role::embedding);
  }
  ~OwnVectors() {
    table() = std::move(table_);
    if (tied_) network_.head.reset();
  }
  OwnVectors(const OwnVectors&) = delete;
  OwnVectors& operator=(const OwnVectors&) = delete;

 private:
  Parameter& table() { return network_.model->embedding.weight; }

  Network& network_;
  Random unused_{0, Purpose::initialisation};
  Parameter table_;
  bool tied_;
};

/// Ids 0, 1, 2, ...: row i of the table belongs to token i.
Sentence numbered(Sentence sentence) {
  std::iota(sentence.ids.begin(), sentence.ids.end(), 0);
  if (sentence.written)
    std::iota(sentence.written->input_ids.begin(), sentence.written->input_ids.end(),
              static_cast<std::int32_t>(sentence.ids.size()));
  return sentence;
}

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
Tensor loss_of(const LoadedModel& trained, const LabelledText& text) {
  const Sentence sentence = numbered(text.sentence);
  Context context;
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

LossGradients loss_gradients(LoadedModel& trained, const LabelledText& text) {
  Network& network = *trained.network;
  const Shape table = network.model->embedding_table().shape();
  const bool tied = !network.head;
  const std::vector<std::int32_t> read = read_ids(text.sentence);
  const OwnVectors own(network, read);
  const Tensor loss = loss_of(trained, text);
  const Gradients gradients = gradients_of(loss);
  LossGradients result{loss.item(), {}, {}, {}};
  for (const auto& [path, parameter] : parameters(network)) {
    if (!gradients.has(*parameter)) continue;
    const Tensor& gradient = gradients.of(*parameter);
    if (parameter->role() == Role::embedding) {
      result.words = row_norms(gradient);
      result.inputs.assign(result.words.begin() + std::ssize(text.sentence.ids),
                           result.words.end());
      result.words.resize(text.sentence.ids.size());
      result.parameters.emplace_back(path, table_gradient(gradient, read, table));
    } else if (tied && parameter->role() == Role::head) {  // the same table, as the output layer
      result.parameters.front().second = result.parameters.front().second + gradient;
    } else {
      result.parameters.emplace_back(path, gradient);
    }
  }
  return result;
}

MeanGradients mean_gradients(LoadedModel& trained, const std::vector<LabelledText>& texts,
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
