#include "train/start/naive_bayes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "datasets/text.h"
#include "layers/attention.h"
#include "layers/initialise.h"

namespace qkv {
namespace {

constexpr double smoothing = 0.05;
/// Words are not independent, so naive Bayes is too sure: training starts from logits this much
/// smaller, so that examples that are right still have gradients.
constexpr double confidence = 0.2;
/// Words that begin with the same letters share counts, as inflected forms do.
constexpr std::size_t stem_letters = 4;

/// The tokens of a training example that a head attends to.
struct Bag {
  std::vector<std::int32_t> tokens;
  std::int32_t asked;  ///< the token that is asked about; -1: none
  std::size_t label;
};

std::vector<Bag> training_bags(const Task& task, Window window) {
  std::vector<Bag> bags;
  for (Index i = 0; i < task.size(Split::train); ++i) {
    const LabelledText text = task.example(Split::train, i);
    const auto& ids = text.sentence.ids;
    const bool asks = text.index >= 0;
    Bag bag{{},
            asks ? ids[static_cast<std::size_t>(text.index)] : -1,
            static_cast<std::size_t>(text.answer)};
    for (Index key = 0; key < std::ssize(ids); ++key)
      if (!asks || window.has(key - text.index))
        bag.tokens.push_back(ids[static_cast<std::size_t>(key)]);
    bags.push_back(std::move(bag));
  }
  return bags;
}

/// The group of each token: words that begin with the same letters or, without letters, equal ones.
/// Shorter words, n-grams and reserved tokens are in group 0.
std::vector<std::size_t> groups_of(const Tokenizer& tokenizer, std::size_t letters) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::map<std::vector<std::string>, std::size_t> groups;
  std::vector<std::size_t> of_token;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    std::vector<std::string> word = characters(vocabulary.token(id));
    const std::size_t kept = letters == 0 ? word.size() : letters;
    const bool has_letters =
        word.size() >= kept && (letters == 0 || !tokenizer.is_ngram(vocabulary.token(id)));
    word.resize(id >= vocabulary.reserved() && has_letters ? kept : 0);
    of_token.push_back(groups.emplace(std::move(word), groups.size()).first->second);
  }
  return of_token;
}

/// Adds the log-count ratios of each token's group to `ratios`, [V, C].
void add_ratios(const std::vector<Bag>& bags, const std::vector<std::size_t>& groups,
                std::size_t labels, std::vector<double>& ratios) {
  std::vector<std::vector<double>> counts(groups.size());  // of each group with each label
  std::vector<double> totals(labels);
  for (const Bag& bag : bags) {
    std::set<std::size_t> present;
    for (const std::int32_t token : bag.tokens)
      if (token != bag.asked) present.insert(groups[static_cast<std::size_t>(token)]);
    present.erase(0);
    for (const std::size_t group : present) {
      counts[group].resize(labels, smoothing);
      ++counts[group][bag.label];
    }
    totals[bag.label] += static_cast<double>(present.size());
  }
  const auto seen = std::ranges::count_if(counts, [](const auto& row) { return !row.empty(); });
  for (double& total : totals) total += smoothing * static_cast<double>(seen);
  for (std::size_t token = 0; token < groups.size(); ++token) {
    std::vector<double> logs = counts[groups[token]];
    for (std::size_t c = 0; c < logs.size(); ++c) logs[c] = std::log(logs[c] / totals[c]);
    const double sum = std::accumulate(logs.begin(), logs.end(), 0.0);
    for (std::size_t c = 0; c < logs.size(); ++c)
      ratios[token * labels + c] += logs[c] - sum / static_cast<double>(labels);
  }
}

std::vector<double> ratios_of(const std::vector<Bag>& bags, const Tokenizer& tokenizer,
                              std::size_t labels) {
  std::vector<double> ratios(static_cast<std::size_t>(tokenizer.vocabulary().size()) * labels);
  for (const std::size_t letters : {std::size_t{0}, stem_letters})
    add_ratios(bags, groups_of(tokenizer, letters), labels, ratios);
  for (const Bag& bag : bags)
    for (std::size_t c = 0; bag.asked >= 0 && c < labels; ++c)
      ratios[static_cast<std::size_t>(bag.asked) * labels + c] = 0;
  return ratios;
}

/// Puts ratios [V, C] into the columns of a table [V, D] from `begin` on.
void put(Parameter& table, std::span<const double> ratios, std::size_t labels, std::size_t begin) {
  const auto width = static_cast<std::size_t>(table.shape()[1]);
  const auto to = table.mutable_data<float>();
  for (std::size_t i = 0; i < ratios.size(); ++i)
    to[i / labels * width + begin + i % labels] = static_cast<float>(ratios[i]);
}

void fix_attention(MultiHeadAttention& attention) {
  const Index width = attention.w_o->weight.shape()[0];
  if (attention.w_q) attention.w_q->weight.assign(Tensor::zeros({width, width}));
  attention.w_v->weight.assign(identity(width));
  attention.w_o->weight.assign(identity(width));
}

void put_priors(Parameter& bias, const std::vector<Bag>& bags) {
  std::vector<double> counts(static_cast<std::size_t>(bias.shape()[0]));
  for (const Bag& bag : bags) ++counts[bag.label];
  for (double& count : counts)
    count = confidence * std::log(count / static_cast<double>(bags.size()));
  bias.assign(Tensor::from(counts, bias.shape()));
}

}  // namespace

void start_as_naive_bayes(Network& network, const ModelOptions& options, const Task& task) {
  const auto attention = modules<MultiHeadAttention>(network);
  const bool attends = !attention.empty(), asks = task.example(Split::train, 0).index >= 0;
  const bool has_windows = attends && asks && options.position == PositionKind::windows;
  const Index heads = has_windows ? options.heads : 1, head_width = options.width / heads;
  require<UserError>(task.outputs() <= head_width,
                     "model.init \"naive-bayes\" needs heads at least as wide as there are "
                     "labels, {}; got model.width / model.heads = {}",
                     task.outputs(), head_width);
  const auto labels = static_cast<std::size_t>(task.outputs());
  if (attends) fix_attention(*attention[0].second);
  Linear& output = *network.head;
  output.weight.assign(Tensor::zeros(output.weight.shape()));
  for (Index head = 0; head < heads; ++head) {
    const auto bags = training_bags(task, has_windows ? window_of(head, options) : Window());
    const auto begin = static_cast<std::size_t>(head * head_width);
    put(network.model->embedding.weight, ratios_of(bags, task.tokenizer(), labels), labels, begin);
    double tokens = 0;
    for (const Bag& bag : bags) tokens += static_cast<double>(bag.tokens.size());
    // The vector of a text is the mean of its words' and of what attention adds to each.
    const int paths = attends && !asks ? 2 : 1;
    const double scale = confidence * tokens / static_cast<double>(bags.size()) / paths;
    for (std::size_t c = 0; c < labels; ++c)
      output.weight.mutable_data<float>()[c * static_cast<std::size_t>(options.width) + begin + c] =
          static_cast<float>(scale);
    if (output.bias) put_priors(*output.bias, bags);
  }
}

}  // namespace qkv
