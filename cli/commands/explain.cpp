#include "inspect/documents/explain.h"
#include "cli/commands/shared.h"
#include "cli/commands/steps.h"

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

void add_lens(Document& document, const std::vector<LensState>& lens) {
  const std::vector<std::string>& choices = lens.back().scores.choices;
  const auto shown = likeliest(lens.back().scores.logits.values());
  Cells rows = {{"      after", "answer", "softmax", "softmax of " + visible(choices[shown[0]])}};
  HeatMap map;
  for (const std::size_t i : shown) map.columns.push_back(visible(choices[i]));
  for (const auto& [label, scores] : lens) {
    const auto probabilities = softmax(scores.logits).values();
    const std::size_t best = likeliest(probabilities)[0];
    rows.push_back({"      " + label, visible(choices[best]),
                    fmt::format("{:.4f}", probabilities[best]),
                    fmt::format("{:.4f}", probabilities[shown[0]])});
    map.rows.push_back(label);
    map.cells.emplace_back();
    for (const std::size_t i : shown) map.cells.back().push_back(probabilities[i]);
  }
  document.add_text("\nwhat each layer would answer (logit lens)\n");
  document.add_table(rows);
  document.add_picture(
      {.title = "logit lens: probability of each answer after each layer", .content = map});
}

void add_attribution(Document& document, const Json& json) {
  const std::string answer = visible(json["answer"].get<std::string>());
  const std::vector<Column> columns = {
      {"      part", "/label"},
      {"logit of " + answer, "/logit"},
      {"less that of " + visible(json["runner_up"].get<std::string>()), "/difference"}};
  HeatMap map = map_of(json["parts"], columns);
  map.largest = largest_absolute(map.cells);
  map.has_two_signs = true;
  double logit = 0, difference = 0;
  for (const Json& part : json["parts"]) {
    logit += part["logit"].get<double>();
    difference += part["difference"].get<double>();
  }
  Json parts = json["parts"];
  parts.push_back(object({{"label", "sum"}, {"logit", logit}, {"difference", difference}}));
  for (Json& part : parts) part["label"] = "      " + part["label"].get<std::string>();
  document.add_text("\nwho wrote the logit of {} (direct logit attribution)\n", answer);
  document.add_table(table_of(parts, columns));
  document.add_picture({.title = "direct logit attribution: what each part adds",
                        .content = map,
                        .needs_colours = true});
}

void require_shown(const Explanation& explanation, const ExplainOptions& options) {
  const auto modules = attention_steps(explanation.recorder);
  require<UserError>(options.head < 0 || !modules.empty(), "--head: the model has no attention");
  for (const AttentionSteps& module : modules)
    require_in_range(options.head, module.heads.size(), "--head");
  const auto& all = explanation.recorder.all();
  const auto is_in_layer = [&](const Recorder::Record& record) {
    return record.layer && record.layer->number == options.layer;
  };
  require<UserError>(options.layer < 0 || std::ranges::any_of(all, is_in_layer),
                     "--layer {}: the model has no such layer; they count from 0", options.layer);
}

Document explain_word(const ExplainOptions& options) {
  const LoadedModel trained = load_model(options.model);
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
  const auto lens = logit_lens(trained, explanation);
  document.data =
      documents::explain(trained, explanation, lens, logit_attribution(trained, explanation),
                         documents::Parameters::shown);
  add_steps(document, explanation, options.layer, options.head);
  if (options.layer >= 0 || options.head >= 0) return document;
  if (!lens.empty()) add_lens(document, lens);
  if (document.data.contains("attribution"))
    add_attribution(document, document.data["attribution"]);
  return document;
}

}  // namespace

Command explain_command() {
  const auto o = std::make_shared<ExplainOptions>();
  return {.name = "explain",
          .summary = "Show every step of a forward pass, with formulas and values, for a word",
          .options = {model_argument(o->model),
                      required({"SENTENCE", &o->sentence, "A sentence"}),
                      word_option(o->word),
                      {"--output", &o->output,
                       "Output token of an encoder-decoder to explain, counted from 0 [0]; --word "
                       "explains the encoder",
                       not_negative},
                      target_option(o->target),
                      layer_option(o->layer),
                      head_option(o->head)},
          .has_pictures = true,
          .run = [o](const Stream&) { return explain_word(*o); }};
}

}  // namespace qkv::commands
