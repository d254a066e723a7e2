#include <algorithm>

#include "cli/commands/shared.h"
#include "cli/terminal.h"
#include "datasets/text.h"
#include "inspect/labelled_text.h"
#include "inspect/word_vectors.h"
#include "layers/pretrained.h"
#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

struct EmbedOptions {
  std::string model;
  std::vector<std::string> sentences;
  std::string word;
  Index layer = -1;
  std::string data;
  std::size_t nearest = 5;
  bool pca = false;
  std::string tsv;
  std::string word2vec;
};

using Vector = std::vector<double>;

/// The asked word in each sentence of the command line, and what a data file adds.
struct Embeddings {
  std::vector<WordVector> asked;
  std::vector<WordVector> all_words;    ///< of the data file, where there are asked ones
  std::vector<WordVector> occurrences;  ///< of the asked word in the data file
};

/// The nearest words of the data file to an asked word.
struct Nearest {
  std::vector<Neighbour> by_static, by_contextual;
};

WordVector embedded(LoadedModel& trained, const EmbedOptions& options, const std::string& text) {
  const Sentence sentence = read_sentence(*trained.task, text);
  const Index index = position_of(*trained.task, sentence, options.word, text);
  WordVector word = word_vectors(trained, sentence, options.layer)[static_cast<std::size_t>(index)];
  word.text = text;
  return word;
}

/// The words whose principal components are shown: the asked ones, then those of the data file.
std::vector<WordVector> projected_words(const Embeddings& embeddings) {
  std::vector<WordVector> words = embeddings.asked;
  words.insert(words.end(), embeddings.occurrences.begin(), embeddings.occurrences.end());
  return words;
}

/// Whether a word of a data file is one of those asked about: the word of the command line, else
/// that of each line, else every word.
bool is_asked(const Task& task, const WordVector& word, const LabelledText& line,
              const std::string& asked) {
  if (!asked.empty())
    return std::ranges::count(task.occurrences(line.sentence, asked), word.index) > 0;
  return line.index < 0 || word.index == line.index;
}

Embeddings embeddings(LoadedModel& trained, const EmbedOptions& options, ReadCallback& callback) {
  Embeddings result;
  for (const std::string& text : options.sentences)
    result.asked.push_back(embedded(trained, options, text));
  if (options.data.empty()) return result;
  const std::string asked = result.asked.empty() ? options.word : result.asked[0].word();
  const auto lines = read_labelled_texts(trained, options.data, callback);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    callback.on_item("embedding", i, lines.size());
    for (WordVector& word : word_vectors(trained, lines[i].sentence, options.layer)) {
      word.label = lines[i].label;
      word.text = lines[i].text;
      if (is_asked(*trained.task, word, lines[i], asked)) result.occurrences.push_back(word);
      if (!result.asked.empty()) result.all_words.push_back(std::move(word));
    }
  }
  require<UserError>(!projected_words(result).empty(), "{} does not contain the word \"{}\"",
                     options.data, asked);
  return result;
}

std::vector<Vector> cosines(const std::vector<WordVector>& all, Vector WordVector::*vector) {
  std::vector<Vector> matrix;
  for (const WordVector& a : all) {
    matrix.emplace_back();
    for (const WordVector& b : all) matrix.back().push_back(cosine(a.*vector, b.*vector));
  }
  return matrix;
}

Rows cosine_table(const std::vector<WordVector>& all, Vector WordVector::*vector,
                  const std::string& title) {
  Rows rows(1, {title});
  const auto matrix = cosines(all, vector);
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows[0].push_back(fmt::format("({})", i + 1));
    rows.push_back({fmt::format("({}) {}", i + 1, all[i].text)});
    for (const double value : matrix[i]) rows.back().push_back(fmt::format("{:.4f}", value));
  }
  return rows;
}

Json to_json(const std::vector<Neighbour>& found) {
  Json list = Json::array();
  for (const auto& [cosine, word] : found)
    list.push_back({{"cosine", cosine},
                    {"word", word->word()},
                    {"label", word->label},
                    {"text", word->text},
                    {"index", word->index}});
  return list;
}

Rows neighbour_table(const std::vector<Neighbour>& found, const std::string& title,
                     bool in_context) {
  Rows rows = {{title, "cosine"}};
  if (in_context) rows[0].push_back("label");
  for (const auto& [cosine, word] : found) {
    auto words = word->sentence->words;
    words[static_cast<std::size_t>(word->index)] = fmt::format("[{}]", word->word());
    rows.push_back({in_context ? fmt::format("{}", fmt::join(words, " ")) : word->word(),
                    fmt::format("{:.4f}", cosine)});
    if (in_context) rows.back().push_back(word->label);
  }
  return rows;
}

Json to_json(const PlanarView& view, const std::vector<WordVector>& words) {
  Json points = Json::array();
  for (std::size_t i = 0; i < words.size(); ++i)
    points.push_back({{"x", view.points[i][0]},
                      {"y", view.points[i][1]},
                      {"label", words[i].label},
                      {"text", words[i].text}});
  return {{"variance_share", view.variance_fraction}, {"points", points}};
}

/// For each asked word; empty without a data file.
std::vector<Nearest> nearest_words(const Embeddings& embeddings, const EmbedOptions& options) {
  std::vector<Nearest> nearest;
  if (options.data.empty()) return nearest;
  const auto to = [&](const WordVector& word, Vector WordVector::*vector) {
    return neighbours(word, embeddings.all_words, vector, options.nearest);
  };
  for (const WordVector& word : embeddings.asked)
    nearest.push_back({to(word, &WordVector::static_vector), to(word, &WordVector::contextual)});
  return nearest;
}

Json to_json(const Embeddings& embeddings, const std::vector<Nearest>& nearest) {
  Json sentences = Json::array();
  for (std::size_t i = 0; i < embeddings.asked.size(); ++i) {
    const WordVector& word = embeddings.asked[i];
    sentences.push_back({{"tokens", word.sentence->words},
                         {"index", word.index},
                         {"static", word.static_vector},
                         {"contextual", word.contextual}});
    if (nearest.empty()) continue;
    sentences.back()["static_neighbours"] = to_json(nearest[i].by_static);
    sentences.back()["neighbours"] = to_json(nearest[i].by_contextual);
  }
  return {{"sentences", sentences},
          {"static_cosine", cosines(embeddings.asked, &WordVector::static_vector)},
          {"contextual_cosine", cosines(embeddings.asked, &WordVector::contextual)}};
}

Json to_json(const LabelCosines& cosines) {
  const auto value = [](const std::optional<double>& mean) { return mean ? Json(*mean) : Json(); };
  return {{"same", value(cosines.same)}, {"different", value(cosines.different)}};
}

/// Mean cosines within and between the labels of a data file; nothing where it has fewer than two.
void add_label_cosines(Document& document, const Embeddings& embeddings) {
  const auto& words = embeddings.occurrences;
  const LabelCosines of_static = label_cosines(words, &WordVector::static_vector),
                     contextual = label_cosines(words, &WordVector::contextual);
  if (!contextual.different) return;
  document.data["label_cosines"] = {{"static", to_json(of_static)},
                                    {"contextual", to_json(contextual)}};
  const auto shown = [](const std::optional<double>& mean) {
    return mean ? fmt::format("{:.4f}", *mean) : "-";
  };
  if (!embeddings.asked.empty()) document.add_text("\n");
  document.add_table(
      {{"mean cosine in the data", "static", "contextual"},
       {"same label", shown(of_static.same), shown(contextual.same)},
       {"different labels", shown(of_static.different), shown(contextual.different)}});
}

bool begins_as_metadata(std::string_view beginning) {
  return beginning.starts_with(projector_metadata_head);
}

/// Whether the first line holds numbers alone.
bool begins_with_numbers(std::string_view beginning) {
  const std::string_view line = beginning.substr(0, beginning.find('\n'));
  return line.find_first_not_of("0123456789+-.einfa\t ") == line.npos;
}

/// Vectors and their description for the TensorBoard embedding projector.
void write_tsv(Document& document, const Embeddings& embeddings,
               const std::filesystem::path& file) {
  const auto [tensors, metadata] = projector_tables(projected_words(embeddings));
  std::filesystem::path beside = file;
  beside.replace_extension(".metadata" + file.extension().string());
  write_result(file, tensors, {"vectors that qkv embed --tsv wrote", begins_with_numbers});
  note_written(document, file);
  write_result(beside, metadata, {"a description that qkv embed --tsv wrote", begins_as_metadata});
  note_written(document, beside);
}

void add_asked(Document& document, const Embeddings& embeddings,
               const std::vector<Nearest>& nearest) {
  const auto& asked = embeddings.asked;
  const std::string& word = asked[0].word();
  document.add_table(cosine_table(asked, &WordVector::static_vector,
                                  fmt::format("cosine of static \"{}\"", word)));
  document.add_text("\n");
  document.add_table(cosine_table(asked, &WordVector::contextual,
                                  fmt::format("cosine of contextual \"{}\"", word)));
  if (nearest.empty()) return;
  document.add_text("\n");
  document.add_table(
      neighbour_table(nearest[0].by_static, fmt::format("nearest to static \"{}\"", word), false));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    document.add_text("\n");
    document.add_table(
        neighbour_table(nearest[i].by_contextual, "nearest to it in: " + asked[i].text, true));
  }
}

void add_components(Document& document, const Embeddings& embeddings) {
  const auto words = projected_words(embeddings);
  if (words.empty()) return;
  const PlanarView of_static = planar_view(words, &WordVector::static_vector),
                   view = planar_view(words, &WordVector::contextual);
  document.data["pca"] = {{"static", to_json(of_static, words)},
                          {"contextual", to_json(view, words)}};
  Scatter scatter{view.points, {}, {"first component", "second component"}};
  for (std::size_t i = 0; i < words.size(); ++i)
    scatter.labels.push_back(i < embeddings.asked.size() ? fmt::format("({})", i + 1)
                                                         : words[i].label);
  document.add_picture(
      {.title = fmt::format(
           "principal components of contextual \"{}\": {:.0f}% and {:.0f}% of the variance",
           words[0].word(), 100 * view.variance_fraction.at(0),
           100 * (view.variance_fraction.size() > 1 ? view.variance_fraction[1] : 0)),
       .content = scatter});
}

Document embed(const EmbedOptions& options) {
  const bool of_data = !options.data.empty();
  require<UserError>(
      !options.sentences.empty() || of_data || !options.word2vec.empty(),
      "give a sentence, --data FILE, or --word2vec FILE for the static vectors alone");
  LoadedModel trained = load_model(options.model);
  const bool asked = !options.sentences.empty() || of_data;
  Document document;
  Notes notes(document);
  const Embeddings all = asked ? embeddings(trained, options, notes) : Embeddings();
  if (!options.word2vec.empty()) {
    write_result(options.word2vec,
                 word2vec_text(trained.task->vocabulary().tokens(),
                               trained.network->model->embedding_table()),
                 {"vectors that qkv embed --word2vec wrote", begins_with_numbers});
    note_written(document, options.word2vec);
  }
  std::vector<Sentence> sentences;
  for (const WordVector& word : all.asked) sentences.push_back(*word.sentence);
  note_unknown_words(document, *trained.task, sentences);
  if (asked && !options.tsv.empty()) write_tsv(document, all, options.tsv);
  const auto nearest = nearest_words(all, options);
  document.data = to_json(all, nearest);
  if (!all.asked.empty()) add_asked(document, all, nearest);
  add_label_cosines(document, all);
  if (options.pca) add_components(document, all);
  return document;
}

}  // namespace

void add_embed(CommandLine& program) {
  add_command<EmbedOptions>(
      program, "embed", "Show a word's static and contextual vectors and their cosines",
      [](Command& command, EmbedOptions& options) {
        add_model_argument(command, options.model);
        command.add_option("SENTENCE", options.sentences, "Sentences that contain the word");
        command.add_option("--word WORD", options.word,
                           "The word [the one the model was trained on]");
        command
            .add_option("--layer", options.layer,
                        "After this layer, counted from 0 [after the last]")
            .not_negative();
        command.add_option("--data FILE", options.data,
                           "File in the task's format: adds the nearest words in it, the mean "
                           "cosines of the word's vectors within and between labels, and to --pca "
                           "and --tsv the word's occurrences");
        command.add_option("--nearest", options.nearest, "Number of nearest words [5]");
        command.add_flag("--pca", options.pca, "Add a map of the first two principal components");
        command.add_option("--tsv FILE", options.tsv,
                           "Write vectors, and FILE.metadata.tsv beside them, for the TensorBoard "
                           "embedding projector");
        command.add_option("--word2vec FILE", options.word2vec,
                           "Write every word's static vector as word2vec text, which "
                           "model.embedding_file reads");
        command.add_svg_option();
      },
      embed);
}

}  // namespace qkv::commands
