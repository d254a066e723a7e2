#include <cmath>
#include <utility>

#include "cli/commands/shared.h"
#include "cli/terminal.h"
#include "inspect/explain.h"
#include "inspect/logit_attribution.h"
#include "inspect/logit_lens.h"
#include "layers/positions.h"

namespace qkv::commands {
namespace {

struct ExplainOptions {
  std::string model;
  std::string sentence;
  std::string word;
  std::string target;
  Index output = 0;
  Index layer = -1;
  Index head = -1;
};

constexpr Index printed_whole = 8;        // wider vectors are abbreviated
constexpr Index printed_of_longer = 6;    // to so many values
constexpr std::size_t most_choices = 10;  // of the prediction are shown

Json to_json(const HeadSteps& head) {
  return {{"q", commands::to_json(head.q)},           {"k", commands::to_json(head.k)},
          {"v", commands::to_json(head.v)},           {"scores", commands::to_json(head.scores)},
          {"scaled", commands::to_json(head.scaled)}, {"weights", commands::to_json(head.weights)},
          {"mixed", commands::to_json(head.mixed)}};
}

/// Every parameter but the embedding table, whose rows in use are the static vectors; that too
/// where it serves as the output layer.
Json used_parameters(Network& network) {
  Json result = Json::object();
  for (const auto& [path, parameter] : parameters(network))
    if (parameter->role() != Role::embedding || !network.head)
      result[path] = commands::to_json(parameter->value());
  return result;
}

Json to_json(const std::vector<LensState>& lens) {
  Json list = Json::array();
  for (const LensState& state : lens)
    list.push_back({{"after", state.label},
                    {"logits", commands::to_json(state.scores.logits)},
                    {"probabilities", commands::to_json(softmax(state.scores.logits))}});
  return list;
}

Json to_json(const LogitAttribution& attribution, const std::vector<std::string>& choices) {
  Json parts = Json::array();
  for (const auto& [label, component, logit, difference] : attribution.parts) {
    parts.push_back({{"label", label}, {"logit", logit}, {"difference", difference}});
    if (component) parts.back()["component"] = commands::to_json(*component);
  }
  return {{"answer", choices[static_cast<std::size_t>(attribution.answer)]},
          {"runner_up", choices[static_cast<std::size_t>(attribution.runner_up)]},
          {"parts", parts}};
}

/// What led to the answer, beside the steps of the computation.
struct Causes {
  std::vector<LensState> lens;
  std::optional<LogitAttribution> attribution;
};

Json to_json(const Explanation& explanation, LoadedModel& trained, const Causes& causes) {
  Json steps = Json::array(), attention = Json::array();
  for (const Recorder::Record& record : explanation.recorder.all()) {
    if (record.value.rank() != 3 || record.name == "mask") continue;
    steps.push_back({{"path", record.path},
                     {"symbol", record.formula.symbol},
                     {"formula", record.formula.formula},
                     {"values", commands::to_json(record.value)[0]}});
  }
  for (const AttentionSteps& module : attention_steps(explanation.recorder)) {
    Json heads = Json::array();
    for (const HeadSteps& head : module.heads) heads.push_back(to_json(head));
    attention.push_back({{"path", module.path},
                         {"scale", module.scale},
                         {"mask", commands::to_json(module.mask)},
                         {"heads", heads}});
  }
  Json json = {{"tokens", explanation.sentence.words},
               {"ids", explanation.sentence.ids},
               {"index", explanation.index},
               {"steps", steps},
               {"attention", attention},
               {"labels", explanation.scores.choices},
               {"logits", commands::to_json(explanation.scores.logits)},
               {"probabilities", commands::to_json(explanation.probabilities)},
               {"parameters", used_parameters(*trained.network)}};
  if (const auto& written = explanation.sentence.written) {
    json["inputs"] = written->inputs;
    json["outputs"] = written->outputs;
  }
  if (!causes.lens.empty()) json["logit_lens"] = to_json(causes.lens);
  if (causes.attribution)
    json["attribution"] = to_json(*causes.attribution, explanation.scores.choices);
  return json;
}

/// The choices with the highest logits, the highest first.
std::vector<std::size_t> descending(const std::vector<double>& logits) {
  std::vector<std::size_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return logits[i]; });
  if (order.size() > most_choices) order.resize(most_choices);
  return order;
}

/// Row `i` of a matrix.
std::vector<double> matrix_row(const Tensor& matrix, Index i) {
  return slice(matrix, 0, i, i + 1).values();
}

constexpr int indent = 6;

/// A vector behind `before` columns of other text, in one line of the terminal.
std::string vector_text(const std::vector<double>& values, int before = indent) {
  constexpr int cell = 8, brackets = 3, ending = 32;
  const int room = output_width() - before;
  const bool long_one =
      std::ssize(values) > printed_whole || std::ssize(values) * cell + brackets > room;
  const Index shown = std::clamp<Index>((room - ending) / cell, 1, printed_of_longer);
  std::string text = "(";
  for (Index i = 0;
       i < (long_one ? std::min<Index>(shown, std::ssize(values)) : std::ssize(values)); ++i)
    text += fmt::format("{:8.4f}", values[static_cast<std::size_t>(i)]);
  if (!long_one) return text + " )";
  double squares = 0;
  for (const double v : values) squares += v * v;
  return text + fmt::format(" ... ) {} values, norm {:.4f}", values.size(), std::sqrt(squares));
}

/// "x_i" -> "x_1" for the second word: words count from 0.
std::string with_index(std::string text, Index index) {
  for (auto at = text.find("_i"); at != text.npos; at = text.find("_i", at + 1))
    text.replace(at + 1, 1, std::to_string(index));
  return text;
}

/// Writes the steps of one word.
class StepsWriter {
 public:
  /// Of every layer and head, or with an option from 0 of that one.
  StepsWriter(const Explanation& explanation, const ExplainOptions& options, Document& document)
      : document_(document),
        at_(explanation),
        index_(explanation.index),
        sources_(marked(explanation.sentence, {})),
        words_(explanation.sentence.written ? inputs() : words_of_sentence()),
        layer_(options.layer),
        head_(options.head) {
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

  /// For the terminal; the asked one in brackets.
  Words words_of_sentence() const { return marked(at_.sentence, std::span(&at_.index, 1)); }
  Words inputs() const {
    Sentence read;
    read.words = at_.sentence.written->inputs;
    return marked(read, std::span(&at_.index, 1));
  }
  const std::string& word(Index i) const { return words_[static_cast<std::size_t>(i)]; }
  /// The words that a word attends to.
  const Words& keys(const AttentionSteps& module) const { return module.cross ? sources_ : words_; }
  void write_tokens(std::string_view title, const Words& words) {
    document_.add_text("\n{}\n ", title);
    for (std::size_t j = 0; j < words.size(); ++j) document_.add_text("  {} {}", j, words[j]);
    document_.add_text("\n");
  }
  /// Of an encoder-decoder those of the decoder, which begin when the encoder has its result.
  std::span<const Recorder::Record> steps() const {
    const std::span all = at_.recorder.all();
    if (!at_.sentence.written) return all;
    const auto is_result = [](const Recorder::Record& record) {
      return record.module.empty() && record.name == "contextual";
    };
    return all.subspan(
        static_cast<std::size_t>(std::ranges::find_if(all, is_result) - all.begin()) + 1);
  }
  /// Whether a recorded value begins something to print: of one head only its queries do.
  bool is_shown(const Recorder::Record& record) const {
    return (layer_ < 0 || (record.layer && record.layer->number == layer_)) &&
           (head_ < 0 || record.name == "q");
  }
  std::string name(const std::string& word) const { return pad_right(word, widest_); }

  /// A title where another part of the model begins.
  void enter(const Recorder::Record& record) {
    const std::string part = record.layer ? record.layer->path : "";
    if (part == part_ && entered_) return;
    document_.add_text("\n{}\n", !part.empty() ? part : entered_ ? "result" : "input");
    part_ = part;
    entered_ = true;
  }

  void write_step(const Recorder::Record& record) {
    const Tensor& value = record.value;
    const auto values =
        matrix_row(slice(value, 0, 0, 1).with_shape({value.dim(1), value.dim(2)}), index_);
    const Formula& formula = record.formula;
    const std::string before = std::exchange(symbol_, formula.symbol);
    if (values == previous_) {  // recorded by a module and again by the one around it
      if (before == symbol_) return;
      enter(record);
      document_.add_text("{}", with_index(fmt::format("  {} = {}\n", symbol_, before), index_));
      return;
    }
    previous_ = values;
    enter(record);
    std::string text = formula.symbol;
    if (!formula.formula.empty()) text += " = " + without_bias(formula.formula);
    document_.add_text("  {}{}\n      {}\n", with_index(text, index_),
                       formula.meaning.empty() ? "" : "   " + formula.meaning, vector_text(values));
  }

  void write_attention(const Recorder::Record& record, const AttentionSteps& module) {
    enter(record);
    for (std::size_t h = 0; h < module.heads.size(); ++h)
      if (head_ < 0 || head_ == static_cast<Index>(h)) write_head(module, h);
    if (head_ >= 0) return;
    const bool several = module.heads.size() > 1;
    previous_ = mixed(module);
    symbol_ = "z_i";
    document_.add_text("  z_{} = {}\n      {}\n", index_,
                       several ? "all heads   concatenation" : "the only head",
                       vector_text(previous_));
  }

  /// How q, k or v comes about.
  std::string projection(const std::string& letter, bool cross) const {
    const ModelOptions& model = at_.model;
    if (model.attention == AttentionKind::parameter_free) return letter + " = x";
    const std::string_view input = cross && letter != "q"        ? "m"
                                   : model.norm == NormKind::pre ? "h"
                                                                 : "x";
    if (model.attention == AttentionKind::uniform && letter != "v")
      return fmt::format("{} = {}", letter, input);
    const std::string product = without_bias(fmt::format("W_{0} {1} + b_{0}", letter, input));
    const auto positions = letter == "v" || cross ? nullptr : make_attention_positions(model);
    return fmt::format("{} = {}", letter, positions ? positions->formula(product) : product);
  }

  /// A model without biases has formulas without them.
  std::string without_bias(std::string text) const {
    if (at_.model.bias) return text;
    for (auto at = text.find(" + b"); at != text.npos; at = text.find(" + b", at))
      text.erase(at, std::min(text.find_first_of(" )", at + 4), text.size()) - at);
    return text;
  }

  std::vector<double> mixed(const AttentionSteps& module) const {
    std::vector<double> values;
    for (const HeadSteps& head : module.heads)
      for (const double v : matrix_row(head.mixed, index_)) values.push_back(v);
    return values;
  }

  void write_head(const AttentionSteps& module, std::size_t h) {
    const HeadSteps& head = module.heads[h];
    document_.add_text("  head {} of {}, d_k = {}: {}, {}, {}{}\n", h, module.heads.size(),
                       head.q.dim(1), projection("q", module.cross), projection("k", module.cross),
                       projection("v", module.cross),
                       module.cross ? "; m: the encoder's vectors" : "");
    const int before = indent + widest_ + 6;  // "q_2 ", the word and two spaces
    document_.add_text("      q_{} {}  {}\n", index_, name(word(index_)),
                       vector_text(matrix_row(head.q, index_), before));
    for (const auto& [letter, matrix] : {std::pair{"k", head.k}, std::pair{"v", head.v}})
      for (Index j = 0; j < matrix.dim(0); ++j)
        document_.add_text("      {}_{} {}  {}\n", letter, j,
                           name(keys(module)[static_cast<std::size_t>(j)]),
                           vector_text(matrix_row(matrix, j), before));
    document_.add_table(weights_table(module, head));
    std::string sum;
    const auto weights = matrix_row(head.weights, index_);
    for (std::size_t j = 0; j < weights.size(); ++j)
      if (weights.size() <= static_cast<std::size_t>(printed_whole))
        sum += fmt::format("{}{:.4f} v_{}", j ? " + " : "", weights[j], j);
    constexpr int around = 26;  // "      z_2 = " and "   weighted sum"
    if (sum.empty() || display_width(sum) > output_width() - around)
      sum = fmt::format("sum over j of w_{}j v_j", index_);
    document_.add_text("      z_{} = {}   weighted sum\n      {}\n", index_, sum,
                       vector_text(matrix_row(head.mixed, index_)));
  }

  /// What happens to the scores: "/ sqrt(8)", "/ sqrt(8) + bias".
  static std::string scaling(const AttentionSteps& module, Index head_width) {
    const double usual = 1 / std::sqrt(static_cast<double>(head_width));
    const std::string bias = module.biased ? " + bias" : "";
    if (std::abs(module.scale - usual) < 1e-6) return fmt::format("/ sqrt({}){}", head_width, bias);
    return fmt::format("* {:g}{}", module.scale, bias);
  }

  Rows weights_table(const AttentionSteps& module, const HeadSteps& head) const {
    const auto scores = matrix_row(head.scores, index_), scaled = matrix_row(head.scaled, index_),
               weights = matrix_row(head.weights, index_), mask = matrix_row(module.mask, index_);
    Rows rows = {
        {"      key", "score", "q.k", scaling(module, head.q.dim(1)), "mask", "weight", "softmax"}};
    for (std::size_t j = 0; j < weights.size(); ++j)
      rows.push_back({fmt::format("      {} {}", j, keys(module)[j]),
                      "s_" + subscript(j, weights.size()), fmt::format("{:.4f}", scores[j]),
                      fmt::format("{:.4f}", scaled[j]), mask[j] == 0 ? "-inf" : "0",
                      "w_" + subscript(j, weights.size()), fmt::format("{:.4f}", weights[j])});
    return rows;
  }

  /// "21" for how much word 2 attends to word 1; with a comma where the digits would run together.
  std::string subscript(std::size_t j, std::size_t keys) const {
    const bool unambiguous = std::max(words_.size(), keys) <= 10;
    return fmt::format("{}{}{}", index_, unambiguous ? "" : ",", j);
  }

  void write_prediction() {
    const Scores& scores = at_.scores;
    if (scores.choices.empty()) {
      document_.add_text(
          "\nThe task has no answers to choose from: these vectors are the result\n");
      return;
    }
    const auto logits = scores.logits.values(), probabilities = at_.probabilities.values();
    document_.add_text("\nprediction\n  logits = {}\n",
                       with_index(without_bias(scores.formula), index_));
    const auto order = descending(logits);
    Rows rows = {{"      choice", "logit", "softmax"}};
    for (const std::size_t i : order)
      rows.push_back({"      " + visible(scores.choices[i]), fmt::format("{:.4f}", logits[i]),
                      fmt::format("{:.4f}", probabilities[i])});
    document_.add_table(rows);
    const std::string answer = visible(scores.choices[order[0]]);
    document_.add_text("  {}{} here: {}\n", at_.sentence.written ? "after " : "", word(index_),
                       answer);
  }

  Document& document_;
  const Explanation& at_;
  Index index_;
  Words sources_;  ///< what the encoder read
  Words words_;    ///< what the stack that answers reads
  Index layer_;
  Index head_;
  int widest_ = 0;
  std::string part_;
  bool entered_ = false;
  std::vector<double> previous_;  ///< values printed last, and what they are called
  std::string symbol_;
};

/// The probabilities of some choices after each layer.
HeatMap lens_map(const std::vector<LensState>& lens, const std::vector<std::size_t>& choices) {
  HeatMap map;
  for (const std::size_t i : choices) map.columns.push_back(visible(lens.back().scores.choices[i]));
  for (const auto& [label, scores] : lens) {
    const auto probabilities = softmax(scores.logits).values();
    map.rows.push_back(label);
    map.cells.emplace_back();
    for (const std::size_t i : choices) map.cells.back().push_back(probabilities[i]);
  }
  return map;
}

void write_lens(const std::vector<LensState>& lens, Document& document) {
  const auto best_of = [](const std::vector<double>& values) {
    return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
  };
  const Scores& last = lens.back().scores;
  const std::size_t answer = best_of(last.logits.values());
  Rows rows = {{"      after", "answer", "softmax", "softmax of " + visible(last.choices[answer])}};
  for (const auto& [label, scores] : lens) {
    const auto probabilities = softmax(scores.logits).values();
    const std::size_t best = best_of(probabilities);
    rows.push_back({"      " + label, visible(scores.choices[best]),
                    fmt::format("{:.4f}", probabilities[best]),
                    fmt::format("{:.4f}", probabilities[answer])});
  }
  document.add_text("\nwhat each layer would answer (logit lens)\n");
  document.add_table(rows);
  document.add_picture({.title = "logit lens: probability of each answer after each layer",
                        .content = lens_map(lens, descending(last.logits.values()))});
}

void write_attribution(const LogitAttribution& attribution, const std::vector<std::string>& choices,
                       Document& document) {
  const auto name = [&](Index i) { return visible(choices[static_cast<std::size_t>(i)]); };
  const std::string answer = name(attribution.answer);
  Rows rows = {{"      part", "logit of " + answer, "less that of " + name(attribution.runner_up)}};
  HeatMap map{{}, {}, {rows[0].begin() + 1, rows[0].end()}};
  double logit = 0, difference = 0;
  const auto add = [&](const std::string& label, double a, double b) {
    rows.push_back({"      " + label, fmt::format("{:.4f}", a), fmt::format("{:.4f}", b)});
  };
  for (const auto& part : attribution.parts) {
    add(part.label, part.logit, part.difference);
    logit += part.logit;
    difference += part.difference;
    map.rows.push_back(part.label);
    map.cells.push_back({part.logit, part.difference});
  }
  map.largest = largest_absolute(map.cells);
  map.has_two_signs = true;
  add("sum", logit, difference);
  document.add_text("\nwho wrote the logit of {} (direct logit attribution)\n", answer);
  document.add_table(rows);
  document.add_picture({.title = "direct logit attribution: what each part adds",
                        .content = map,
                        .needs_colours = true});
}

/// Throws UserError when there is no such layer or head.
void require_shown(const Explanation& explanation, const ExplainOptions& options) {
  const auto modules = attention_steps(explanation.recorder);
  require<UserError>(options.head < 0 || !modules.empty(), "--head: the model has no attention");
  for (const AttentionSteps& module : modules)
    require_in_range(options.head, module.heads.size(), "--head");
  const auto& all = explanation.recorder.all();
  require<UserError>(options.layer < 0 || std::ranges::any_of(all,
                                                              [&](const Recorder::Record& record) {
                                                                return record.layer &&
                                                                       record.layer->number ==
                                                                           options.layer;
                                                              }),
                     "--layer {}: the model has no such layer; they count from 0", options.layer);
}

Document explain_word(const ExplainOptions& options) {
  LoadedModel trained = load_model(options.model);
  Sentence sentence = read_sentence(*trained.task, options.sentence);
  if (options.word.empty()) write_target(trained, sentence, options.target);
  const Index index = sentence.written
                          ? options.output
                          : position_of(*trained.task, sentence, options.word, options.sentence);
  if (sentence.written) require_in_range(index, sentence.written->inputs.size(), "--output");
  const Explanation explanation = explain(trained, sentence, index);
  require_shown(explanation, options);
  Document document;
  note_unknown_words(document, *trained.task, {&sentence, 1});
  const Causes causes = {logit_lens(trained, explanation), logit_attribution(trained, explanation)};
  document.data = to_json(explanation, trained, causes);
  StepsWriter(explanation, options, document).write();
  if (options.layer >= 0 || options.head >= 0) return document;
  if (!causes.lens.empty()) write_lens(causes.lens, document);
  if (causes.attribution)
    write_attribution(*causes.attribution, explanation.scores.choices, document);
  return document;
}

}  // namespace

void add_explain(CommandLine& program) {
  add_command<ExplainOptions>(
      program, "explain", "Show every step of a forward pass, with formulas and values, for a word",
      [](Command& command, ExplainOptions& options) {
        add_model_argument(command, options.model);
        command.add_option("SENTENCE", options.sentence, "A sentence").required();
        command.add_option("--word WORD", options.word,
                           "The word [the one the model was trained on]");
        command
            .add_option("--output", options.output,
                        "Of an encoder-decoder, the token that it writes, counted from 0 [0]; with "
                        "--word what its encoder computes")
            .not_negative();
        add_target_option(command, options.target);
        add_head_options(command, options.layer, options.head);
        command.add_svg_option();
      },
      explain_word);
}

}  // namespace qkv::commands
