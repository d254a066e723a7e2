#include "inspect/linear_probe.h"

#include <algorithm>
#include <map>
#include <set>
#include <xtensor-blas/xlinalg.hpp>

#include "core/xtensor.h"
#include "inspect/components.h"

namespace qkv {
namespace {

std::vector<ResidualState> probed_states(Network& network) {
  std::vector<ResidualState> states;
  const auto stacks = stacks_of(network);
  if (stacks.size() == 1)
    states = residual_states(*stacks.front().second);
  else
    states.push_back({"input", {network.model.get(), "static"}});
  states.push_back({"contextual", {network.model.get(), "contextual"}});
  return states;
}

/// The vectors of some texts in one state, [N, D], and what they should tell.
struct ProbedTexts {
  std::vector<Tensor> vectors;  ///< by state
  std::vector<Index> labels;
  std::vector<std::int32_t> types;  ///< the words that are asked about; -1: the whole text
};

/// The word that is asked about, or the mean over the words [T, D], [1, D].
Tensor probed_vector(const Tensor& words, Index index) {
  return index >= 0 ? slice(words, 0, index, index + 1) : mean(words, 0, true);
}

ProbedTexts probed_texts(const LoadedModel& trained, const std::vector<LabelledText>& texts,
                         ReadCallback& callback) {
  const auto states = probed_states(*trained.network);
  std::vector<std::vector<Tensor>> rows(states.size());
  ProbedTexts result;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    callback.on_item("recording", t, texts.size());
    const LabelledText& text = texts[t];
    if (text.answer < 0 || text.antecedent >= 0) continue;
    const Recorder recorder = recorded(trained, text.sentence);
    for (std::size_t s = 0; s < states.size(); ++s)
      rows[s].push_back(
          probed_vector(recorded_vectors(recorder, states[s].activation), text.index));
    result.labels.push_back(text.answer);
    result.types.push_back(
        text.index < 0 ? -1 : text.sentence.ids[static_cast<std::size_t>(text.index)]);
  }
  require<UserError>(!result.labels.empty(),
                     "no text has a label that the model knows; linear probes need labelled texts "
                     "of a task with labels");
  for (const auto& of_state : rows) result.vectors.push_back(concatenate(of_state, 0));
  return result;
}

double accuracy(const std::vector<Index>& predicted, std::span<const Index> labels) {
  double right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i];
  return right / static_cast<double>(labels.size());
}

/// A random label for each type, or without types for each text, of the distribution of `labels`.
std::vector<Index> control_labels(std::span<const std::int32_t> types,
                                  std::span<const Index> labels, bool by_type) {
  const Random random(0, Purpose::testing);
  std::vector<Index> control;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto drawn = by_type ? static_cast<std::uint64_t>(types[i]) : i;
    control.push_back(labels[random.bits(drawn) % labels.size()]);
  }
  return control;
}

}  // namespace

RidgeClassifier::RidgeClassifier(const Tensor& x, std::span<const Index> labels, Index classes,
                                 double penalty) {
  std::vector<double> one_hot(static_cast<std::size_t>(x.dim(0) * classes));
  for (std::size_t i = 0; i < labels.size(); ++i)
    one_hot[i * static_cast<std::size_t>(classes) + static_cast<std::size_t>(labels[i])] = 1;
  const Tensor y = Tensor::from(one_hot, {x.dim(0), classes}, DType::float64);
  mean_ = mean(x, 0, true);
  bias_ = mean(y, 0, true);
  const Tensor centred = x - mean_;
  const Tensor gram = matmul(centred, centred, Transpose::first),
               targets = matmul(centred, y - bias_, Transpose::first);
  xt::xtensor<double, 2> a = xtensor_view<double, 2>(gram);
  for (std::size_t i = 0; i < a.shape(0); ++i) a(i, i) += penalty;
  const xt::xtensor<double, 2> b = xtensor_view<double, 2>(targets);
  const xt::xtensor<double, 2> solution = xt::linalg::solve(a, b);
  weight_ = from_xtensor(solution);
}

std::vector<Index> RidgeClassifier::predict(const Tensor& x) const {
  const Indices best = argmax(matmul(x - mean_, weight_) + bias_, 1);
  return {best.data().begin(), best.data().end()};
}

std::vector<LayerProbe> linear_probes(const LoadedModel& trained,
                                      const std::vector<LabelledText>& train,
                                      const std::vector<LabelledText>& test,
                                      ReadCallback& callback) {
  const ProbedTexts train_texts = probed_texts(trained, train, callback),
                    test_texts = probed_texts(trained, test, callback);
  const Index classes =
      1 + std::max(std::ranges::max(train_texts.labels), std::ranges::max(test_texts.labels));
  const bool by_type = std::set(train_texts.types.begin(), train_texts.types.end()).size() > 1;
  const auto control_of = [&](const ProbedTexts& texts) {
    return control_labels(texts.types, train_texts.labels, by_type);
  };
  const auto control_train = control_of(train_texts),
             control_test = by_type ? control_of(test_texts) : control_train;
  const auto states = probed_states(*trained.network);
  std::vector<LayerProbe> probes;
  for (std::size_t s = 0; s < states.size(); ++s) {
    callback.on_item("probing", s, states.size());
    const Tensor &x = train_texts.vectors[s], &x_test = test_texts.vectors[s],
                 &compared = by_type ? x_test : x;
    // A hundredth of the mean variance of a dimension, times the number of texts.
    const double penalty = 0.01 * std::max(sum(variance(x, 0)).item(), 1e-12) /
                           static_cast<double>(x.dim(1)) * static_cast<double>(x.dim(0));
    const RidgeClassifier probe(x, train_texts.labels, classes, penalty),
        control(x, control_train, classes, penalty);
    const double control_accuracy = accuracy(control.predict(compared), control_test);
    const double same_texts =
        accuracy(probe.predict(compared), by_type ? test_texts.labels : train_texts.labels);
    probes.push_back({states[s].label, accuracy(probe.predict(x_test), test_texts.labels),
                      control_accuracy, same_texts - control_accuracy});
  }
  return probes;
}

}  // namespace qkv
