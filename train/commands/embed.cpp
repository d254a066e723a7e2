#include <cmath>
#include <fstream>

#include "train/commands/shared.h"
#include "train/durable_file.h"
#include "train/explain.h"
#include "train/terminal.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> sentences;
  std::string word;
  Index layer = -1;
  std::string tsv;
  bool json = false;
};

using Vector = std::vector<double>;

/// A word's vectors in one sentence.
struct Embedded {
  std::string text;
  Sentence sentence;
  Index index;
  Vector static_vector, contextual;
};

Vector row(const Tensor& states, Index index) {
  const Tensor x = slice(states, 1, index, index + 1);
  return x.values();
}

/// a . b / (|a| |b|); exactly 1 for equal vectors.
double cosine(const Vector& a, const Vector& b) {
  if (a == b) return 1;
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    dot += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return dot / std::sqrt(aa * bb);
}

std::vector<Vector> cosines(const std::vector<Embedded>& all, Vector Embedded::*vector) {
  std::vector<Vector> matrix;
  for (const Embedded& a : all) {
    matrix.emplace_back();
    for (const Embedded& b : all) matrix.back().push_back(cosine(a.*vector, b.*vector));
  }
  return matrix;
}

std::string contextual_path(const Trained& trained, Index layer) {
  if (layer < 0) return "contextual";
  require<UserError>(layer < trained.config.model.layers,
                     "--layer {}: the model has layers 0 to {}", layer,
                     trained.config.model.layers - 1);
  return fmt::format("encoder.layers.{}.output", layer);
}

Embedded embedded(Trained& trained, const Options& options, const std::string& text) {
  const Sentence sentence = read_sentence(*trained.task, text);
  const Index index = position_of(sentence, options.word, text);
  const Recorder recorder = recorded(*trained.network, sentence);
  return {text, sentence, index, row(recorder.at("static"), index),
          row(recorder.at(contextual_path(trained, options.layer)), index)};
}

Json to_json(const std::vector<Embedded>& all) {
  Json sentences = Json::array();
  for (const Embedded& e : all)
    sentences.push_back({{"tokens", e.sentence.words},
                         {"index", e.index},
                         {"static", e.static_vector},
                         {"contextual", e.contextual}});
  return {{"sentences", sentences},
          {"static_cosine", cosines(all, &Embedded::static_vector)},
          {"contextual_cosine", cosines(all, &Embedded::contextual)}};
}

std::string cosine_table(const std::vector<Embedded>& all, Vector Embedded::*vector,
                         const std::string& title) {
  std::vector<std::vector<std::string>> rows(1, {title});
  const auto matrix = cosines(all, vector);
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows[0].push_back(fmt::format("({})", i + 1));
    rows.push_back({fmt::format("({}) {}", i + 1, all[i].text)});
    for (const double value : matrix[i]) rows.back().push_back(fmt::format("{:.4f}", value));
  }
  return table(rows);
}

/// Rows for the TensorBoard embedding projector: a vector a line.
std::string to_tsv(const std::vector<Embedded>& all) {
  std::string text;
  for (const Embedded& e : all)
    for (const Vector* vector : {&e.static_vector, &e.contextual})
      text += fmt::format("{}\n", fmt::join(*vector, "\t"));
  return text;
}

int run(const Options& options) {
  Trained trained = load_trained(options.model);
  std::vector<Embedded> all;
  std::vector<Sentence> sentences;
  for (const std::string& text : options.sentences)
    sentences.push_back(all.emplace_back(embedded(trained, options, text)).sentence);
  say_unknown_words(sentences);
  if (!options.tsv.empty()) write_durably(options.tsv, to_tsv(all));
  if (options.json) {
    print(to_json(all));
    return 0;
  }
  const std::string word = all[0].sentence.words[static_cast<std::size_t>(all[0].index)];
  fmt::print(
      "{}\n{}",
      cosine_table(all, &Embedded::static_vector, fmt::format("cosine of static \"{}\"", word)),
      cosine_table(all, &Embedded::contextual, fmt::format("cosine of contextual \"{}\"", word)));
  return 0;
}

}  // namespace

void add_embed(CLI::App& program, Action& action) {
  add_command<Options>(
      program, action, "embed", "Show a word's static and contextual vectors and their cosines",
      [](CLI::App& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option("SENTENCE", options.sentences, "Sentences that contain the word")
            ->required();
        command.add_option("--word", options.word, "The word [the one the model was trained on]");
        command
            .add_option("--layer", options.layer,
                        "After this layer, counted from 0 [after the last]")
            ->check(CLI::NonNegativeNumber);
        command.add_option("--tsv", options.tsv,
                           "Write the vectors, static then contextual for each sentence");
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
