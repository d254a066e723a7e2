#include <bit>

#include "cli/commands/shared.h"
#include "inspect/loss_gradients.h"
#include "inspect/weight_statistics.h"

namespace qkv::commands {
namespace {

struct GradientsOptions {
  std::string model;
  std::string sentence;
  std::string word;
  std::string target;
  std::string data;
  bool untrained = false;
};

Json to_json(const std::vector<std::pair<std::string, Tensor>>& parameters) {
  Json list = Json::array();
  for (const auto& [path, gradient] : parameters)
    list.push_back(object({{"path", path}, {"norm", statistics(gradient).norm}}));
  return list;
}

Cells to_table(const std::vector<std::pair<std::string, Tensor>>& parameters) {
  Cells rows = {{"parameter", "shape", "norm of its gradient"}};
  for (const auto& [path, gradient] : parameters)
    rows.push_back(
        {path, to_string(gradient.shape()), fmt::format("{:.4g}", statistics(gradient).norm)});
  return rows;
}

Cells to_table(const std::string& title, const std::vector<std::string>& words,
               const std::vector<double>& norms, const std::vector<double>& contributions = {}) {
  Cells rows = {{title, "norm of its vector's gradient"}};
  if (!contributions.empty()) rows.front().push_back("lowers the loss by (gradient × input)");
  for (std::size_t i = 0; i < words.size(); ++i) {
    rows.push_back({words[i], fmt::format("{:.4g}", norms[i])});
    if (!contributions.empty()) rows.back().push_back(fmt::format("{:.4g}", contributions[i]));
  }
  return rows;
}

LabelledText asked_text(const LoadedModel& trained, const GradientsOptions& options) {
  Sentence sentence = read_sentence(*trained.task, options.sentence);
  write_target(trained, sentence, options.target);
  const bool of_a_word = !options.word.empty() || !sentence.targets.empty();
  const Index index =
      of_a_word ? position_of(*trained.task, sentence, options.word, options.sentence) : -1;
  return {"", options.sentence, std::move(sentence), index};
}

Document gradients_of_sentence(LoadedModel& trained, const GradientsOptions& options) {
  const LabelledText text = asked_text(trained, options);
  const LossGradients found = loss_gradients(trained, text);
  Document document;
  note_unknown_words(document, *trained.task, {&text.sentence, 1});
  document.data = object({{"tokens", text.sentence.words},
                          {"loss", found.loss},
                          {"words", found.words},
                          {"contributions", found.contributions},
                          {"parameters", to_json(found.parameters)}});
  const auto asked = text.index < 0 ? std::span<const Index>() : std::span(&text.index, 1);
  document.add_text("loss of {}: {:.4f}\n",
                    options.target.empty() ? "the model's own answer" : "the target", found.loss);
  document.add_table(
      to_table("word", marked(text.sentence, asked), found.words, found.contributions));
  if (const auto& written = text.sentence.written) {
    // Each token that a decoder reads says which one to write next.
    document.data["inputs"] = written->inputs;
    document.data["input_norms"] = found.inputs;
    std::vector<std::string> inputs;
    for (const std::string& token : written->inputs) inputs.push_back(visible(token));
    document.add_table(to_table("read by the decoder", inputs, found.inputs));
  }
  document.add_table(to_table(found.parameters));
  return document;
}

/// 0, 1, 2, 4, 8, ... words away in either direction: few enough to read.
bool is_printed(Index distance) {
  return distance == 0 || std::has_single_bit(static_cast<std::uint64_t>(std::abs(distance)));
}

Document mean_gradients_of_data(LoadedModel& trained, const GradientsOptions& options) {
  Document document;
  Notes notes(document);
  auto texts = read_labelled_texts(trained, options.data, notes);
  for (LabelledText& text : texts) write_target(trained, text.sentence, options.target);
  const MeanGradients mean = mean_gradients(trained, texts, notes);
  Json distances = Json::array(), printed = Json::array();
  for (const auto& [distance, count, norm] : mean.distances) {
    distances.push_back(object({{"distance", distance}, {"texts", count}, {"norm", norm}}));
    if (is_printed(distance)) printed.push_back(distances.back());
  }
  document.data = object({{"sentences", texts.size()},
                          {"loss", mean.loss},
                          {"distances", distances},
                          {"parameters", to_json(mean.parameters)}});
  document.add_text("mean loss of {} texts: {:.4f}\n", texts.size(), mean.loss);
  document.add_table(
      table_of(printed, {{"words back", "/distance"},
                         {"texts", "/texts"},
                         {"mean norm of the vector's gradient", "/norm", "{:.4g}"}}));
  document.add_table(to_table(mean.parameters));
  return document;
}

Document gradients(const GradientsOptions& options) {
  require<UserError>(options.sentence.empty() != options.data.empty(),
                     "give a sentence or --data, one of the two");
  LoadedModel trained = load_model(options.model, options.untrained);
  return options.data.empty() ? gradients_of_sentence(trained, options)
                              : mean_gradients_of_data(trained, options);
}

}  // namespace

Command gradients_command() {
  const auto o = std::make_shared<GradientsOptions>();
  return {.name = "gradients",
          .summary = "Show how much the loss depends on each word's vector and each parameter",
          .options = {model_argument(o->model),
                      {"SENTENCE", &o->sentence, "A sentence"},
                      word_option(o->word),
                      target_option(o->target),
                      {"--data FILE", &o->data,
                       "Average over the labelled sentences of a file in the task's format, by the "
                       "distance from the word that is asked about"},
                      untrained_flag(o->untrained)},
          .run = [o](const Stream&) { return gradients(*o); }};
}

}  // namespace qkv::commands
