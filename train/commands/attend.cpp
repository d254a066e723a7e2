#include "train/commands/shared.h"
#include "train/explain.h"
#include "train/terminal.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::string sentence;
  Index layer = -1;
  Index head = -1;
  bool json = false;
};

using Matrix = std::vector<std::vector<double>>;  // [query][key]

/// [head][query][key] of one layer.
std::vector<Matrix> heads_of(const Tensor& weights) {
  const Index heads = weights.dim(1), time = weights.dim(2);
  const auto values = weights.values();
  std::vector<Matrix> result(static_cast<std::size_t>(heads),
                             Matrix(static_cast<std::size_t>(time)));
  auto next = values.begin();
  for (Matrix& head : result)
    for (auto& row : head) row.assign(next, next + time), next += time;
  return result;
}

std::vector<std::vector<Matrix>> attention_of(Trained& trained, const Sentence& sentence) {
  const Recorder recorder = recorded(*trained.network, sentence);
  std::vector<std::vector<Matrix>> layers;
  if (trained.config.model.kind == ModelKind::encoder)
    for (Index i = 0; i < trained.config.model.layers; ++i)
      layers.push_back(
          heads_of(recorder.at(fmt::format("encoder.layers.{}.attention.weights", i))));
  require<UserError>(!layers.empty(), "the model has no attention to show");
  return layers;
}

void require_in_range(Index value, std::size_t count, std::string_view option) {
  require<UserError>(value < static_cast<Index>(count),
                     "{} {}: the model has {} of them, counted from 0", option, value, count);
}

int run(const Options& options) {
  Trained trained = load_trained(options.model);
  const Sentence sentence = read_sentence(*trained.task, options.sentence);
  const auto layers = attention_of(trained, sentence);
  require_in_range(options.layer, layers.size(), "--layer");
  require_in_range(options.head, layers[0].size(), "--head");
  say_unknown_words({&sentence, 1});
  if (options.json) {
    Json document = {{"tokens", sentence.words}, {"layers", Json::array()}};
    for (const auto& heads : layers) document["layers"].push_back({{"heads", heads}});
    print(document);
    return 0;
  }
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      const auto skipped = [](Index chosen, std::size_t i) {
        return chosen >= 0 && chosen != static_cast<Index>(i);
      };
      if (skipped(options.layer, l) || skipped(options.head, h)) continue;
      fmt::print(
          "layer {}, head {}: a row says how much its word takes from each column\n{}\n", l, h,
          heat_map({layers[l][h], sentence.words, sentence.words}, colours(), output_width()));
    }
  return 0;
}

}  // namespace

void add_attend(CLI::App& program, Action& action) {
  add_command<Options>(
      program, action, "attend", "Show which words each word attends to",
      [](CLI::App& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option("SENTENCE", options.sentence, "A sentence")->required();
        command.add_option("--layer", options.layer, "Only this layer, counted from 0")
            ->check(CLI::NonNegativeNumber);
        command.add_option("--head", options.head, "Only this head, counted from 0")
            ->check(CLI::NonNegativeNumber);
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
