#include "datasets/text_file.h"
#include "train/commands/shared.h"
#include "train/terminal.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  bool json = false;
};

int run(const Options& options) {
  require<UserError>(options.texts.empty() != options.file.empty(),
                     "give texts or --file, one of the two");
  const Trained trained = load_trained(options.model);
  Json predictions = Json::array();
  std::vector<std::vector<std::string>> rows = {{"text", "word", "answer", "probability"}};
  std::vector<Sentence> sentences;
  for (const std::string& text : options.file.empty() ? options.texts : read_lines(options.file)) {
    const Sentence& sentence = sentences.emplace_back(read_sentence(*trained.task, text));
    for (const Prediction& p : trained.task->predict(*trained.network, text)) {
      Json json = {{"text", p.text},
                   {p.is_output ? "output" : "label", p.label},
                   {"probability", p.probability}};
      if (p.index) json["index"] = *p.index;
      predictions.push_back(json);
      rows.push_back({p.text, p.index ? sentence.words[static_cast<std::size_t>(*p.index)] : "",
                      p.label, fmt::format("{:.4f}", p.probability)});
    }
  }
  say_unknown_words(sentences);
  if (options.json)
    print({{"predictions", predictions}});
  else
    fmt::print("{}", table(rows));
  return 0;
}

}  // namespace

void add_predict(CommandLine& program) {
  add_command<Options>(
      program, "predict", "Say what a model makes of a text",
      [](Command& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option("TEXT", options.texts, "Sentences");
        command.add_option("--file", options.file, "File with a sentence a line");
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
