#include <bit>

#include "cli/commands/shared.h"
#include "cli/terminal.h"
#include "inspect/loss_gradients.h"
#include "inspect/weight_statistics.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::string sentence;
  std::string word;
  std::string data;
  bool untrained = false;
  bool json = false;
};

using ByPath = std::vector<std::pair<std::string, Tensor>>;

std::string number(double v) {
  return fmt::format("{:.4g}", v);
}

Json to_json(const ByPath& parameters) {
  Json list = Json::array();
  for (const auto& [path, gradient] : parameters)
    list.push_back({{"path", path}, {"norm", statistics(gradient).norm}});
  return list;
}

std::string to_table(const ByPath& parameters) {
  std::vector<std::vector<std::string>> rows = {{"parameter", "shape", "norm of its gradient"}};
  for (const auto& [path, gradient] : parameters)
    rows.push_back({path, to_string(gradient.shape()), number(statistics(gradient).norm)});
  return table(rows);
}

LabelledText asked(const Trained& trained, const Options& options) {
  const Sentence sentence = read_sentence(*trained.task, options.sentence);
  const bool of_a_word = !options.word.empty() || !sentence.targets.empty();
  const Index index = of_a_word ? position_of(sentence, options.word, options.sentence) : -1;
  return {"", options.sentence, sentence, index};
}

int show_sentence(Trained& trained, const Options& options) {
  const LabelledText text = asked(trained, options);
  const auto& words = text.sentence.words;
  const LossGradients found = loss_gradients(trained, text);
  say_unknown_words({&text.sentence, 1});
  if (options.json) {
    print({{"tokens", words},
           {"loss", found.loss},
           {"words", found.words},
           {"parameters", to_json(found.parameters)}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"word", "norm of its vector's gradient"}};
  const auto asked = text.index < 0 ? std::span<const Index>() : std::span(&text.index, 1);
  const auto shown = marked(text.sentence, asked);
  for (std::size_t i = 0; i < shown.size(); ++i) rows.push_back({shown[i], number(found.words[i])});
  fmt::print("loss of the model's own answer: {:.4f}\n{}\n{}", found.loss, table(rows),
             to_table(found.parameters));
  return 0;
}

/// 0, 1, 2, 4, 8, ... words away in either direction: few enough to read.
bool is_printed(Index distance) {
  return distance == 0 || std::has_single_bit(static_cast<std::uint64_t>(std::abs(distance)));
}

int show_data(Trained& trained, const Options& options) {
  const auto texts = read_labelled_texts(trained, options.data);
  const MeanGradients mean = mean_gradients(trained, texts);
  if (options.json) {
    Json distances = Json::array();
    for (const auto& [distance, count, norm] : mean.distances)
      distances.push_back({{"distance", distance}, {"texts", count}, {"norm", norm}});
    print({{"sentences", texts.size()},
           {"loss", mean.loss},
           {"distances", distances},
           {"parameters", to_json(mean.parameters)}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"words back", "texts", "mean norm of the vector's gradient"}};
  for (const auto& [distance, count, norm] : mean.distances)
    if (is_printed(distance))
      rows.push_back({fmt::format("{}", distance), fmt::format("{}", count), number(norm)});
  fmt::print("mean loss of {} texts: {:.4f}\n{}\n{}", texts.size(), mean.loss, table(rows),
             to_table(mean.parameters));
  return 0;
}

int run(const Options& options) {
  require<UserError>(options.sentence.empty() != options.data.empty(),
                     "give a sentence or --data, one of the two");
  Trained trained = load_model(options.model, options.untrained);
  return options.data.empty() ? show_sentence(trained, options) : show_data(trained, options);
}

}  // namespace

void add_gradients(CommandLine& program) {
  add_command<Options>(
      program, "gradients",
      "Show how much the loss depends on each word's vector and each parameter",
      [](Command& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option("SENTENCE", options.sentence, "A sentence");
        command.add_option("--word", options.word,
                           "The word that is asked about [the one the model was trained on]");
        command.add_option("--data", options.data,
                           "Average over the labelled sentences of a file in the task's format, "
                           "by the distance from the word that is asked about");
        add_untrained_flag(command, options.untrained);
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
