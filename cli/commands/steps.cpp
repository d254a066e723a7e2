#include "cli/commands/steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cli/commands/shared.h"
#include "cli/terminal.h"
#include "layers/positions.h"

namespace qkv::commands {
namespace {

constexpr Index printed_whole = 8;      // wider vectors are abbreviated
constexpr Index printed_of_longer = 6;  // to so many values

std::vector<double> matrix_row(const Tensor& matrix, Index i) {
  return slice(matrix, 0, i, i + 1).values();
}

constexpr int indent = 6;

/// A vector behind `before` columns of other text, in one line of the terminal.
std::string vector_text(const std::vector<double>& values, int before = indent) {
  constexpr int cell = 8, brackets = 3, ending = 32;
  const auto count = std::ssize(values);
  const int room = output_width() - before;
  const bool is_long = count > printed_whole || count * cell + brackets > room;
  const Index most = std::clamp<Index>((room - ending) / cell, 1, printed_of_longer);
  std::string text = "(";
  for (Index i = 0; i < (is_long ? std::min<Index>(most, count) : count); ++i)
    text += fmt::format("{:8.4f}", values[static_cast<std::size_t>(i)]);
  const double norm =
      std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  return text + (is_long ? fmt::format(" ... ) {} values, norm {:.4f}", count, norm) : " )");
}

/// "x_i" -> "x_1" for the second word: words count from 0.
std::string with_index(std::string text, Index index) {
  for (auto at = text.find("_i"); at != text.npos; at = text.find("_i", at + 1))
    text.replace(at + 1, 1, std::to_string(index));
  return text;
}

/// A model without biases has formulas without them.
std::string without_bias(std::string text, const ModelOptions& model) {
  if (model.bias) return text;
  for (auto at = text.find(" + b"); at != text.npos; at = text.find(" + b", at))
    text.erase(at, std::min(text.find_first_of(" )", at + 4), text.size()) - at);
  return text;
}

std::string projection(const std::string& letter, bool cross, const ModelOptions& model) {
  if (model.attention == AttentionKind::parameter_free) return letter + " = x";
  const bool is_projected = model.attention != AttentionKind::uniform || letter == "v";
  const std::string_view input = cross && letter != "q"        ? "m"
                                 : model.norm == NormKind::pre ? "h"
                                                               : "x";
  if (!is_projected) return fmt::format("{} = {}", letter, input);
  const std::string product = without_bias(fmt::format("W_{0} {1} + b_{0}", letter, input), model);
  const auto positions = letter == "v" || cross ? nullptr : make_attention_positions(model);
  return fmt::format("{} = {}", letter, positions ? positions->formula(product) : product);
}

/// The scaling of the scores: "/ sqrt(8)", "/ sqrt(8) + bias".
std::string scaling(const AttentionSteps& module, Index head_width) {
  const double usual = 1 / std::sqrt(static_cast<double>(head_width));
  const std::string bias = module.biased ? " + bias" : "";
  if (std::abs(module.scale - usual) < 1e-6) return fmt::format("/ sqrt({}){}", head_width, bias);
  return fmt::format("* {:g}{}", module.scale, bias);
}

class StepsWriter {
 public:
  /// Every layer and head, or with an option from 0 that one.
  StepsWriter(const Explanation& explanation, Index layer, Index head, Document& document)
      : document_(document),
        at_(explanation),
        layer_(layer),
        head_(head),
        index_(explanation.index),
        sources_(marked(explanation.sentence, {})),
        words_(words_of(explanation)) {
    for (const auto* words : {&words_, &sources_})
      for (const std::string& word : *words) widest_ = std::max(widest_, display_width(word));
  }

  void write() {
    document_.add_text(
        "The steps of {}, word i = {} counted from 0, to 4 decimals; --json has every value of "
        "every word\n",
        word(index_), index_);
    if (at_.sentence.written) write_tokens("source", sources_);
    write_tokens(at_.sentence.written ? "read by the decoder" : "tokens", words_);
    const auto attention = attention_steps(at_.recorder);
    for (const Recorder::Record& record : steps()) {
      if (!is_shown(record)) continue;
      const auto module = std::ranges::find(attention, record.module, &AttentionSteps::path);
      if (module == attention.end() || record.name == "output")
        write_step(record);
      else if (record.name == "q")
        write_attention(record, *module);
    }
    if (layer_ < 0 && head_ < 0) write_prediction();
  }

 private:
  using Words = std::vector<std::string>;

  /// The words that the stack which answers reads, the asked one in brackets.
  static Words words_of(const Explanation& explanation) {
    Sentence read = explanation.sentence;
    if (read.written) read.words = read.written->inputs;
    return marked(read, std::span(&explanation.index, 1));
  }
  const std::string& word(Index i) const { return words_[static_cast<std::size_t>(i)]; }
  std::string name(const std::string& word) const { return pad_right(word, widest_); }
  const Words& keys(const AttentionSteps& module) const { return module.cross ? sources_ : words_; }
  void write_tokens(std::string_view title, const Words& words) {
    document_.add_text("\n{}\n ", title);
    for (std::size_t j = 0; j < words.size(); ++j) document_.add_text("  {} {}", j, words[j]);
    document_.add_text("\n");
  }

  /// An encoder-decoder shows the decoder's, which begin when the encoder has its result.
  std::span<const Recorder::Record> steps() const {
    const std::span all = at_.recorder.all();
    if (!at_.sentence.written) return all;
    const auto result = std::ranges::find(all, std::string("contextual"), &Recorder::Record::path);
    return all.subspan(static_cast<std::size_t>(result - all.begin()) + 1);
  }
  /// Whether a recorded value begins something to print: of one head only its queries do.
  bool is_shown(const Recorder::Record& record) const {
    return (layer_ < 0 || (record.layer && record.layer->number == layer_)) &&
           (head_ < 0 || record.name == "q");
  }

  /// A title where another part of the model begins.
  void enter(const Recorder::Record& record) {
    const std::string part = record.layer ? record.layer->path : "";
    if (part_ == part) return;
    document_.add_text("\n{}\n", !part.empty() ? part : part_ ? "result" : "input");
    part_ = part;
  }

  void write_step(const Recorder::Record& record) {
    const Formula& formula = record.formula;
    const std::string before = std::exchange(symbol_, formula.symbol);
    const Tensor earlier = std::exchange(value_, record.value);
    if (earlier && earlier.data<float>().data() == value_.data<float>().data()) {
      // A module recorded its result, and the module around it does so again.
      if (before == symbol_) return;
      enter(record);
      document_.add_text("{}", with_index(fmt::format("  {} = {}\n", symbol_, before), index_));
      return;
    }
    enter(record);
    std::string text = formula.symbol;
    if (!formula.formula.empty()) text += " = " + without_bias(formula.formula, at_.model);
    document_.add_text("  {}{}\n      {}\n", with_index(text, index_),
                       formula.meaning.empty() ? "" : "   " + formula.meaning,
                       vector_text(vector_of(record.value)));
  }
  std::vector<double> vector_of(const Tensor& batch) const {
    return slice(batch, 1, index_, index_ + 1).values();
  }

  void write_attention(const Recorder::Record& record, const AttentionSteps& module) {
    enter(record);
    for (std::size_t h = 0; h < module.heads.size(); ++h)
      if (head_ < 0 || head_ == static_cast<Index>(h)) write_head(module, h);
    if (head_ >= 0) return;
    value_ = at_.recorder.at(module.path + ".mixed");
    symbol_ = "z_i";
    document_.add_text("  z_{} = {}\n      {}\n", index_,
                       module.heads.size() > 1 ? "all heads   concatenation" : "the only head",
                       vector_text(vector_of(value_)));
  }

  void write_head(const AttentionSteps& module, std::size_t h) {
    const HeadSteps& head = module.heads[h];
    document_.add_text(
        "  head {} of {}, d_k = {}: {}, {}, {}{}\n", h, module.heads.size(), head.q.dim(1),
        projection("q", module.cross, at_.model), projection("k", module.cross, at_.model),
        projection("v", module.cross, at_.model), module.cross ? "; m: the encoder's vectors" : "");
    const int before = indent + widest_ + 6;  // "q_2 ", the word and two spaces
    const auto write_vector = [&](const char* letter, Index i, const std::string& word,
                                  const Tensor& matrix) {
      document_.add_text("      {}_{} {}  {}\n", letter, i, name(word),
                         vector_text(matrix_row(matrix, i), before));
    };
    write_vector("q", index_, word(index_), head.q);
    for (const auto& [letter, matrix] : {std::pair{"k", head.k}, std::pair{"v", head.v}})
      for (Index j = 0; j < matrix.dim(0); ++j)
        write_vector(letter, j, keys(module)[static_cast<std::size_t>(j)], matrix);
    document_.add_table(weights_table(module, head));
    document_.add_text("      z_{} = {}   weighted sum\n      {}\n", index_, weighted_sum(head),
                       vector_text(matrix_row(head.mixed, index_)));
  }

  /// "0.2500 v_0 + 0.7500 v_1", or what it is a sum of where that is too long.
  std::string weighted_sum(const HeadSteps& head) const {
    constexpr int around = 26;  // "      z_2 = " and "   weighted sum"
    const auto weights = matrix_row(head.weights, index_);
    std::string sum;
    for (std::size_t j = 0; j < weights.size(); ++j)
      sum += fmt::format("{}{:.4f} v_{}", j ? " + " : "", weights[j], j);
    if (std::ssize(weights) <= printed_whole && display_width(sum) <= output_width() - around)
      return sum;
    return fmt::format("sum over j of w_{}j v_j", index_);
  }

  Cells weights_table(const AttentionSteps& module, const HeadSteps& head) const {
    const auto scores = matrix_row(head.scores, index_), scaled = matrix_row(head.scaled, index_),
               weights = matrix_row(head.weights, index_), mask = matrix_row(module.mask, index_);
    // A comma where the digits of "w_21" would run together.
    const bool unambiguous = std::max(words_.size(), weights.size()) <= 10;
    Cells rows = {
        {"      key", "score", "q.k", scaling(module, head.q.dim(1)), "mask", "weight", "softmax"}};
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const std::string pair = fmt::format("{}{}{}", index_, unambiguous ? "" : ",", j);
      rows.push_back({fmt::format("      {} {}", j, keys(module)[j]), "s_" + pair,
                      fmt::format("{:.4f}", scores[j]), fmt::format("{:.4f}", scaled[j]),
                      mask[j] == 0 ? "-inf" : "0", "w_" + pair, fmt::format("{:.4f}", weights[j])});
    }
    return rows;
  }

  void write_prediction() {
    const Scores& scores = at_.scores;
    if (scores.choices.empty()) {
      document_.add_text(
          "\nThe task has no answers to choose from: these vectors are the result\n");
      return;
    }
    const auto logits = scores.logits.values(), probabilities = at_.probabilities.values();
    const auto order = likeliest(logits);
    Cells rows = {{"      choice", "logit", "softmax"}};
    for (const std::size_t i : order)
      rows.push_back({"      " + visible(scores.choices[i]), fmt::format("{:.4f}", logits[i]),
                      fmt::format("{:.4f}", probabilities[i])});
    document_.add_text("\nprediction\n  logits = {}\n",
                       with_index(without_bias(scores.formula, at_.model), index_));
    document_.add_table(rows);
    document_.add_text("  {}{} here: {}\n", at_.sentence.written ? "after " : "", word(index_),
                       visible(scores.choices[order[0]]));
  }

  Document& document_;
  const Explanation& at_;
  Index layer_, head_;
  Index index_;
  Words sources_;  ///< what the encoder read
  Words words_;    ///< what the stack that answers reads
  int widest_ = 0;
  std::optional<std::string> part_;
  Tensor value_;  ///< printed last, and what it is called
  std::string symbol_;
};

}  // namespace

void add_steps(Document& document, const Explanation& explanation, Index layer, Index head) {
  StepsWriter(explanation, layer, head, document).write();
}

std::vector<std::size_t> likeliest(const std::vector<double>& logits) {
  constexpr std::size_t most = 10;
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return logits[i]; });
  if (order.size() > most) order.resize(most);
  return order;
}

}  // namespace qkv::commands
