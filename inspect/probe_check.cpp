#include "inspect/probe_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "inspect/attention_flow.h"
#include "inspect/intervention.h"
#include "inspect/word_vectors.h"
#include "train/tasks/task.h"

namespace qkv {
namespace {

using Texts = std::vector<std::string>;

bool holds(double value, const Expectation& expected) {
  if (expected.relation == Relation::below) return value < expected.number;
  if (expected.relation == Relation::above) return value > expected.number;
  return value == expected.number;
}

Finding cosines(const LoadedModel& model, const Probe& probe, const Expectation& expected) {
  std::vector<WordVector> words;
  for (const std::string& text : probe.sentences) {
    const Sentence sentence = model.task->read(text);
    const auto all = word_vectors(model, sentence, -1);
    for (const Index i : positions_of_word(*model.task, probe, sentence))
      words.push_back(all[static_cast<std::size_t>(i)]);
  }
  require<UserError>(words.size() > 1, "a cosine needs the word twice, its sentences have it {}",
                     words.empty() ? "nowhere" : "once");
  const auto vector = expected.measure == Measure::static_cosine ? &WordVector::static_vector
                                                                 : &WordVector::contextual;
  std::vector<double> found;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) found.push_back(cosine(words[i].*vector, words[j].*vector));
  const auto [least, most] = std::ranges::minmax(found);
  const bool farther_below = expected.number - least > most - expected.number;
  const double worst = expected.relation == Relation::below   ? most
                       : expected.relation == Relation::above ? least
                       : farther_below                        ? least
                                                              : most;
  return {fmt::format("{:.4f}", worst), holds(worst, expected), worst};
}

Finding answers(const LoadedModel& model, const Probe& probe, const Expectation& expected) {
  Texts found;
  for (const std::string& text : probe.sentences)
    for (const Prediction& prediction : model.task->predict(*model.network, text))
      found.push_back(prediction.label);
  require<UserError>(found.size() == expected.texts.size(),
                     "expects {} answers, the model gives {} to these sentences",
                     expected.texts.size(), found.size());
  return {fmt::format("{}", fmt::join(found, ", ")), found == expected.texts};
}

/// The word with the largest weight of a row; none when others have as much.
std::string favourite(const std::vector<double>& weights, const Texts& words) {
  const auto most = std::ranges::max_element(weights);
  if (std::ranges::count(weights, *most) > 1) return "none";
  return words[static_cast<std::size_t>(most - weights.begin())];
}

/// The word that gets the most attention in each sentence, for each head of each layer.
std::vector<std::vector<Texts>> favourites(const LoadedModel& model, const Probe& probe) {
  std::vector<std::vector<Texts>> found;
  for (const std::string& text : probe.sentences) {
    const Sentence sentence = model.task->read(text);
    const auto at = positions_of_word(*model.task, probe, sentence);
    require<UserError>(!at.empty(), "\"{}\" does not contain its word", text);
    const LayerWeights layers = self_attention(recorded(model, sentence));
    require<UserError>(!layers.empty(), "the model has no attention");
    found.resize(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      found[l].resize(static_cast<std::size_t>(layers[l].dim(0)));
      for (Index h = 0; h < layers[l].dim(0); ++h) {
        const Tensor weights = slice(weights_of_head(layers[l], h), 0, at.front(), at.front() + 1);
        found[l][static_cast<std::size_t>(h)].push_back(
            favourite(weights.values(), sentence.words));
      }
    }
  }
  return found;
}

/// The head that matches the expectation in most sentences.
Finding attention(const LoadedModel& model, const Probe& probe, const Expectation& expected) {
  Texts wanted = expected.texts;
  if (wanted.size() == 1) wanted.resize(probe.sentences.size(), wanted.front());
  require<UserError>(wanted.size() == probe.sentences.size(),
                     "expects {} words of {} sentences; give one for each", wanted.size(),
                     probe.sentences.size());
  std::size_t most = 0;
  std::string measured;
  const auto layers = favourites(model, probe);
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      std::size_t right = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) right += layers[l][h][i] == wanted[i];
      if (!measured.empty() && right <= most) continue;
      most = right;
      measured = fmt::format("{} (layer {}, head {})", fmt::join(layers[l][h], ", "), l, h);
    }
  return {measured, most == wanted.size()};
}

Finding find(const LoadedModel& model, const Probe& probe) {
  const Expectation expected = parse_expectation(probe.expect);
  switch (expected.measure) {
    case Measure::static_cosine:
    case Measure::contextual_cosine:
      return cosines(model, probe, expected);
    case Measure::attends_to:
      return attention(model, probe, expected);
    case Measure::label:
    case Measure::output:
      break;
  }
  return answers(model, probe, expected);
}

/// Throws UserError when a text has a word that is not in the vocabulary.
void require_known_words(const Task& task, const std::string& text) {
  const Sentence sentence = task.read(text);
  for (std::size_t i = 0; i < sentence.ids.size(); ++i)
    require<UserError>(
        !task.vocabulary().is_unknown(sentence.ids[i]) || sentence.words[i] == mask_text,
        "\"{}\" is not in the vocabulary", sentence.words[i]);
}

/// Throws UserError when a probe is about words or answers that the model does not know.
void require_known(const LoadedModel& model, const Probe& probe) {
  for (const std::string& text : probe.sentences) require_known_words(*model.task, text);
  const Expectation expected = parse_expectation(probe.expect);
  const auto lists = model.task->vocabularies();
  const auto labels = lists.find("labels");
  for (const std::string& text : expected.texts)
    if (expected.measure == Measure::output)
      require_known_words(*model.task, text);
    else if (expected.measure == Measure::label && labels != lists.end())
      require<UserError>(std::ranges::find(labels->second, text) != labels->second.end(),
                         "\"{}\" is no label of the model's", text);
}

/// Throws UserError when the probe cannot be asked of the model.
ProbeResult asked(const LoadedModel& model, const Probe& probe) {
  ProbeResult result{probe, find(model, probe), {}};
  for (const std::string& name : probe.broken_by) {
    const Intervention intervention = intervention_of(name).value();
    Probe changed = probe;
    if (intervention == Intervention::swapped_words)
      for (std::string& text : changed.sentences)
        text = swapped(text, probe.swap[0], probe.swap[1]);
    result.broken.push_back(find(intervened(model, intervention), changed));
  }
  return result;
}

}  // namespace

std::vector<Index> positions_of_word(const Task& task, const Probe& probe,
                                     const Sentence& sentence) {
  return probe.word.empty() ? sentence.targets : task.occurrences(sentence, probe.word);
}

bool ProbeResult::passes() const {
  return trained.holds && std::ranges::none_of(broken, &Finding::holds);
}

std::vector<std::string> leave_out_probes(LoadedModel& model) {
  std::vector<std::string> lines;
  std::erase_if(model.config.probes, [&](const Probe& probe) {
    try {
      require_known(model, probe);
      asked(model, probe);
      return false;
    } catch (const UserError& error) {
      lines.push_back(fmt::format(
          "the probe \"{}\" of the config is left out, as it is not about these data: {}",
          probe.name, error.what()));
      return true;
    }
  });
  return lines;
}

std::vector<ProbeResult> check_probes(const LoadedModel& model) {
  std::vector<ProbeResult> results;
  for (const Probe& probe : model.config.probes) try {
      results.push_back(asked(model, probe));
    } catch (const UserError& error) {
      throw UserError(fmt::format("probe \"{}\": {}", probe.name, error.what()));
    }
  return results;
}

}  // namespace qkv
