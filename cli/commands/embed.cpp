#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands/shared.h"
#include "datasets/text.h"
#include "inspect/documents/embed.h"
#include "inspect/labelled_text.h"
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

/// The vectors of a word before and after the model has read the sentence.
struct VectorKind {
  std::string name;
  std::vector<double> WordVector::*vector;
};
const VectorKind of_words{"static", &WordVector::static_vector},
    in_context{"contextual", &WordVector::contextual};

/// The asked word in each sentence of the command line, and what a data file adds.
struct Embeddings {
  std::vector<WordVector> asked;
  std::vector<WordVector> all_words;  ///< of the data file, where there are asked ones
  std::vector<WordVector> shown;      ///< the asked words, then those of the data file
};

WordVector embedded(const LoadedModel& trained, const EmbedOptions& options,
                    const std::string& text) {
  const Sentence sentence = read_sentence(*trained.task, text);
  const Index index = position_of(*trained.task, sentence, options.word, text);
  WordVector word = word_vectors(trained, sentence, options.layer)[static_cast<std::size_t>(index)];
  word.text = text;
  return word;
}

/// Whether a word of a data file is one of those asked about: the word of the command line, else
/// that of each line, else every word.
bool is_asked(const Task& task, const WordVector& word, const LabelledText& line,
              const std::string& asked) {
  if (!asked.empty())
    return std::ranges::count(task.occurrences(line.sentence, asked), word.index) > 0;
  return line.index < 0 || word.index == line.index;
}

Embeddings embeddings(const LoadedModel& trained, const EmbedOptions& options,
                      ReadCallback& callback) {
  Embeddings result;
  for (const std::string& text : options.sentences)
    result.asked.push_back(embedded(trained, options, text));
  result.shown = result.asked;
  if (options.data.empty()) return result;
  const std::string asked = result.asked.empty() ? options.word : result.asked[0].word();
  const auto lines = read_labelled_texts(trained, options.data, callback);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    callback.on_item("embedding", i, lines.size());
    for (WordVector& word : word_vectors(trained, lines[i].sentence, options.layer)) {
      word.label = lines[i].label;
      word.text = lines[i].text;
      if (is_asked(*trained.task, word, lines[i], asked)) result.shown.push_back(word);
      if (!result.asked.empty()) result.all_words.push_back(std::move(word));
    }
  }
  require<UserError>(!result.shown.empty(), "{} does not contain the word \"{}\"", options.data,
                     asked);
  return result;
}

void add_cosines(Document& document, const std::vector<WordVector>& asked, const VectorKind& kind) {
  Cells rows(1);
  Json& matrix = document.data[kind.name + "_cosine"] = Json::array();
  for (const WordVector& a : asked) {
    rows.push_back({fmt::format("({}) {}", rows.size(), a.text)});
    matrix.push_back(Json::array());
    for (const WordVector& b : asked) {
      const double value = cosine(a.*kind.vector, b.*kind.vector);
      matrix.back().push_back(value);
      rows.back().push_back(fmt::format("{:.4f}", value));
    }
  }
  if (asked.empty()) return;
  rows[0] = {fmt::format("cosine of {} \"{}\"", kind.name, asked[0].word())};
  for (std::size_t i = 1; i <= asked.size(); ++i) rows[0].push_back(fmt::format("({})", i));
  document.add_table(std::move(rows));
}

Json to_json(const std::vector<Neighbour>& nearest) {
  Json list = Json::array();
  for (const auto& [cosine, found] : nearest)
    list.push_back(object({{"cosine", cosine},
                           {"word", found->word()},
                           {"label", found->label},
                           {"text", found->text},
                           {"index", found->index}}));
  return list;
}

void add_asked(Document& document, const Embeddings& all, const EmbedOptions& options) {
  document.data["sentences"] = Json::array();
  std::vector<Cells> tables;
  for (const WordVector& word : all.asked) {
    Json& json = document.data["sentences"].emplace_back(documents::vectors(word));
    if (options.data.empty()) continue;
    const auto by_word = neighbours(word, all.all_words, of_words.vector, options.nearest),
               by_sense = neighbours(word, all.all_words, in_context.vector, options.nearest);
    json["static_neighbours"] = to_json(by_word);
    json["neighbours"] = to_json(by_sense);
    Cells words = {{fmt::format("nearest to static \"{}\"", word.word()), "cosine"}},
          sentences = {{"nearest to it in: " + word.text, "cosine", "label"}};
    for (const auto& [cosine, found] : by_word)
      words.push_back({found->word(), fmt::format("{:.4f}", cosine)});
    for (const auto& [cosine, found] : by_sense)
      sentences.push_back(
          {fmt::format("{}", fmt::join(marked(*found->sentence, {&found->index, 1}), " ")),
           fmt::format("{:.4f}", cosine), found->label});
    if (tables.empty()) tables.push_back(words);
    tables.push_back(sentences);
  }
  for (const VectorKind& kind : {of_words, in_context}) add_cosines(document, all.asked, kind);
  for (Cells& rows : tables) document.add_table(std::move(rows));
}

/// Mean cosines within and between the labels of a data file; nothing where it has fewer than two.
void add_label_cosines(Document& document, const Embeddings& all) {
  const std::vector<WordVector> occurrences(all.shown.begin() + std::ssize(all.asked),
                                            all.shown.end());
  Json same = object({{"pair", "same label"}}), different = object({{"pair", "different labels"}});
  Json found;
  for (const VectorKind& kind : {of_words, in_context}) {
    const LabelCosines cosines = label_cosines(occurrences, kind.vector);
    if (!cosines.different) return;
    same[kind.name] = found[kind.name]["same"] = cosines.same ? Json(*cosines.same) : Json();
    different[kind.name] = found[kind.name]["different"] = *cosines.different;
  }
  document.data["label_cosines"] = found;
  document.add_table(table_of(Json::array({same, different}), {{"mean cosine in the data", "/pair"},
                                                               {"static", "/static"},
                                                               {"contextual", "/contextual"}}));
}

/// Whether the first line holds numbers alone.
bool begins_with_numbers(std::string_view beginning) {
  const std::string_view line = beginning.substr(0, beginning.find('\n'));
  return line.find_first_not_of("0123456789+-.einfa\t ") == line.npos;
}

/// Vectors and their description for the TensorBoard embedding projector.
void write_tsv(Document& document, const Embeddings& all, const std::filesystem::path& file) {
  const auto [tensors, metadata] = projector_tables(all.shown);
  std::filesystem::path beside = file;
  beside.replace_extension(".metadata" + file.extension().string());
  write_result(file, tensors, {"vectors that qkv embed --tsv wrote", begins_with_numbers});
  note_written(document, file);
  write_result(beside, metadata,
               {"a description that qkv embed --tsv wrote", [](std::string_view beginning) {
                  return beginning.starts_with(projector_metadata_head);
                }});
  note_written(document, beside);
}

void write_word2vec(Document& document, const LoadedModel& trained, const std::string& file) {
  write_result(
      file,
      word2vec_text(trained.task->vocabulary().tokens(), trained.network->model->embedding_table()),
      {"vectors that qkv embed --word2vec wrote", begins_with_numbers});
  note_written(document, file);
}

void add_components(Document& document, const Embeddings& all) {
  const std::vector<WordVector>& words = all.shown;
  if (words.empty()) return;
  std::vector<std::array<double, 2>> places;
  std::vector<double> fractions;  // of the variance
  for (const VectorKind& kind : {of_words, in_context}) {
    const Tensor rows = stacked(words, kind.vector);
    const auto components = principal_components(rows, 2);
    places = in_plane(components, rows);
    fractions = components.variance_fraction;
    Json points = Json::array();
    for (std::size_t i = 0; i < words.size(); ++i)
      points.push_back(object({{"x", places[i][0]},
                               {"y", places[i][1]},
                               {"label", words[i].label},
                               {"text", words[i].text}}));
    document.data["pca"][kind.name] = object({{"variance_share", fractions}, {"points", points}});
  }
  Scatter scatter{places, {}, {"first component", "second component"}};
  for (std::size_t i = 0; i < words.size(); ++i)
    scatter.labels.push_back(i < all.asked.size() ? fmt::format("({})", i + 1) : words[i].label);
  document.add_picture(
      {.title = fmt::format(
           "principal components of contextual \"{}\": {:.0f}% and {:.0f}% of the variance",
           words[0].word(), 100 * fractions.at(0), 100 * (fractions.size() > 1 ? fractions[1] : 0)),
       .content = scatter});
}

Document embed(const EmbedOptions& options) {
  const bool asks = !options.sentences.empty() || !options.data.empty();
  require<UserError>(
      asks || !options.word2vec.empty(),
      "give a sentence, --data FILE, or --word2vec FILE for the static vectors alone");
  const LoadedModel trained = load_model(options.model);
  Document document;
  Notes notes(document);
  const Embeddings all = asks ? embeddings(trained, options, notes) : Embeddings();
  if (!options.word2vec.empty()) write_word2vec(document, trained, options.word2vec);
  std::vector<Sentence> sentences;
  for (const WordVector& word : all.asked) sentences.push_back(*word.sentence);
  note_unknown_words(document, *trained.task, sentences);
  if (asks && !options.tsv.empty()) write_tsv(document, all, options.tsv);
  add_asked(document, all, options);
  add_label_cosines(document, all);
  if (options.pca) add_components(document, all);
  return document;
}

}  // namespace

Command embed_command() {
  const auto o = std::make_shared<EmbedOptions>();
  return {.name = "embed",
          .summary = "Show a word's static and contextual vectors and their cosines",
          .options =
              {model_argument(o->model),
               {"SENTENCE", &o->sentences, "Sentences that contain the word"},
               word_option(o->word),
               {"--layer", &o->layer, "After this layer, counted from 0 [after the last]",
                not_negative},
               {"--data FILE", &o->data,
                "File in the task's format: adds the nearest words in it, the mean cosines of the "
                "word's vectors within and between labels, and to --pca and --tsv the word's "
                "occurrences"},
               {"--nearest", &o->nearest, "Number of nearest words [5]"},
               {"--pca", &o->pca, "Add a map of the first two principal components"},
               {"--tsv FILE", &o->tsv,
                "Write vectors, and FILE.metadata.tsv beside them, for the TensorBoard embedding "
                "projector"},
               {"--word2vec FILE", &o->word2vec,
                "Write every word's static vector as word2vec text, which model.embedding reads"}},
          .has_pictures = true,
          .run = [o](const Stream&) { return embed(*o); }};
}

}  // namespace qkv::commands
