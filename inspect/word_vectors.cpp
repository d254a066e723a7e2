#include "inspect/word_vectors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "datasets/printable.h"

namespace qkv {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<double> row(const Tensor& states, Index index) {
  return slice(states, 1, index, index + 1).values();
}

/// Where a recorder keeps the output of layer `layer`.
std::string layer_path(const Recorder& recorder, Index layer) {
  if (layer < 0) return "contextual";
  for (const Recorder::Record& record : recorder.all())
    if (record.is_output_of_layer() && record.layer->number == layer) return record.path;
  throw UserError(fmt::format("--layer {}: the model has no such layer; they count from 0", layer));
}

}  // namespace

std::vector<WordVector> word_vectors(const LoadedModel& trained, const Sentence& sentence,
                                     Index layer, const std::vector<Replacement>& replaced) {
  const Recorder recorder = recorded(trained, sentence, replaced);
  const Tensor before = recorder.at("static"), after = recorder.at(layer_path(recorder, layer));
  const auto shared = std::make_shared<const Sentence>(sentence);
  std::vector<WordVector> words;
  for (Index i = 0; i < std::ssize(sentence.words); ++i)
    words.push_back({"", fmt::format("{}", fmt::join(sentence.words, " ")), shared, i,
                     row(before, i), row(after, i)});
  return words;
}

WordVector word_vector(const LoadedModel& trained, const Sentence& sentence, Index index,
                       const std::vector<Replacement>& replaced) {
  const auto words = word_vectors(trained, sentence, -1, replaced);
  if (index >= 0) return words[static_cast<std::size_t>(index)];
  WordVector result = words[0];
  result.index = -1;
  for (const auto vector : {&WordVector::static_vector, &WordVector::contextual})
    result.*vector = mean(stacked(words, vector), 0).values();
  return result;
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  if (a == b) return 1;
  const double squares = dot(a, a) * dot(b, b);
  return squares > 0 ? dot(a, b) / std::sqrt(squares) : 0;
}

LabelCosines label_cosines(const std::vector<WordVector>& words,
                           std::vector<double> WordVector::*vector) {
  // The cosines of all pairs of a group sum up to |s|^2 - n, where s is the sum of its n unit
  // vectors.
  struct Group {
    std::vector<double> sum;
    double units = 0, count = 0;

    void add(const std::vector<double>& added) {
      const double norm = std::sqrt(dot(added, added));
      sum.resize(added.size());
      for (std::size_t i = 0; i < added.size(); ++i) sum[i] += norm > 0 ? added[i] / norm : 0;
      units += norm > 0;
      ++count;
    }
    double cosines() const { return dot(sum, sum) - units; }
    double pairs() const { return count * (count - 1); }
  };
  Group all;
  std::map<std::string, Group> by_label;
  for (const WordVector& word : words) {
    all.add(word.*vector);
    by_label[word.label].add(word.*vector);
  }
  double same = 0, pairs = 0;
  for (const auto& [label, group] : by_label) {
    same += group.cosines();
    pairs += group.pairs();
  }
  const auto mean = [](double sum, double count) {
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  };
  return {mean(same, pairs), mean(all.cosines() - same, all.pairs() - pairs)};
}

std::vector<Neighbour> neighbours(const WordVector& word, const std::vector<WordVector>& words,
                                  std::vector<double> WordVector::*vector, std::size_t count) {
  const bool is_static = vector == &WordVector::static_vector;
  const auto name = [is_static](const WordVector& w) {
    return is_static ? w.word() : fmt::format("{} {}", w.index, fmt::join(w.sentence->words, " "));
  };
  std::set<std::string> seen = {name(word)};
  std::vector<Neighbour> found;
  for (const WordVector& other : words)
    if (seen.insert(name(other)).second)
      found.push_back({cosine(word.*vector, other.*vector), &other});
  std::ranges::stable_sort(found, std::greater(), &Neighbour::cosine);
  found.resize(std::min(count, found.size()));
  return found;
}

std::vector<NearWord> nearest_words(const LoadedModel& trained, std::int32_t id,
                                    std::size_t count) {
  const Tensor table = trained.network->model->embedding_table().value().detach();
  const auto vector_of = [&](Index token) { return slice(table, 0, token, token + 1).values(); };
  const Vocabulary& vocabulary = trained.task->vocabulary();
  const std::vector<double> vector = vector_of(id);
  std::vector<NearWord> found;
  for (std::int32_t other = vocabulary.reserved(); other < vocabulary.size(); ++other)
    if (other != id) found.push_back({vocabulary.token(other), cosine(vector, vector_of(other))});
  std::ranges::stable_sort(found, std::greater(), &NearWord::cosine);
  found.resize(std::min(count, found.size()));
  return found;
}

Tensor stacked(const std::vector<WordVector>& words, std::vector<double> WordVector::*vector) {
  std::vector<double> values;
  for (const WordVector& word : words)
    values.insert(values.end(), (word.*vector).begin(), (word.*vector).end());
  const Index count = std::ssize(words);
  return Tensor::from(values, {count, std::ssize(values) / count}, DType::float64);
}

ProjectorTables projector_tables(const std::vector<WordVector>& words) {
  ProjectorTables tables{"", std::string(projector_metadata_head)};
  for (const WordVector& word : words)
    for (const auto& [kind, values] :
         {std::pair{"static", &word.static_vector}, std::pair{"contextual", &word.contextual}}) {
      tables.tensors += fmt::format("{}\n", fmt::join(*values, "\t"));
      const std::string sentence = fmt::format("{}", fmt::join(word.sentence->words, " "));
      tables.metadata += fmt::format("{}\t{}\t{}\t{}\n", in_one_line(word.word()), kind,
                                     in_one_line(word.label), in_one_line(sentence));
    }
  return tables;
}

std::vector<std::array<double, 2>> in_plane(const PrincipalComponents& components,
                                            const Tensor& points) {
  const Tensor projected = components.project(points);
  const auto values = projected.values();
  const auto axes = static_cast<std::size_t>(projected.dim(1));
  std::vector<std::array<double, 2>> result;
  for (std::size_t i = 0; i < values.size(); i += axes)
    result.push_back({values[i], axes > 1 ? values[i + 1] : 0});
  return result;
}

}  // namespace qkv
