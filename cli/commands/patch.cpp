#include "cli/commands/shared.h"
#include "datasets/tsv.h"
#include "inspect/patching.h"

namespace qkv::commands {
namespace {

struct PatchOptions {
  std::string model;
  std::string clean, corrupt;
  std::string data;
  std::string word;
};

PatchPair pair_of(const Task& task, const std::string& clean, const std::string& corrupt,
                  const std::string& word) {
  PatchPair pair{read_sentence(task, clean), read_sentence(task, corrupt), 0, 0};
  const auto index = [&](const Sentence& sentence, const std::string& text) {
    const bool of_a_word = !word.empty() || !sentence.targets.empty();
    return of_a_word ? position_of(task, sentence, word, text) : 0;
  };
  pair.clean_index = index(pair.clean, clean);
  pair.corrupt_index = index(pair.corrupt, corrupt);
  return pair;
}

std::vector<PatchPair> pairs_of(const Task& task, const PatchOptions& options, Document& document) {
  if (options.data.empty()) return {pair_of(task, options.clean, options.corrupt, options.word)};
  std::vector<PatchPair> pairs;
  Notes notes(document);
  for_each_row(options.data, "clean<TAB>corrupt", notes, [&](const TsvRow& row) {
    pairs.push_back(pair_of(task, row.fields[0], row.fields[1], options.word));
  });
  return pairs;
}

/// The tokens of a pair, "clean/corrupt" where they differ; of several pairs the positions.
std::vector<std::string> columns_of(const std::vector<PatchPair>& pairs) {
  const auto& clean = pairs.front().clean.words;
  const auto& corrupt = pairs.front().corrupt.words;
  std::vector<std::string> columns;
  for (std::size_t t = 0; t < clean.size(); ++t)
    columns.push_back(pairs.size() > 1         ? fmt::format("{}", t)
                      : clean[t] == corrupt[t] ? visible(clean[t])
                                               : visible(clean[t]) + "/" + visible(corrupt[t]));
  columns.emplace_back("all");
  return columns;
}

Json rows_json(const std::vector<PatchedRow>& rows) {
  Json list = Json::array();
  for (const PatchedRow& row : rows) {
    list.push_back(object({{"layer", row.layer}}));
    if (row.head >= 0) list.back()["head"] = row.head;
    list.back()["positions"] = row.positions;
    list.back()["all"] = row.all;
  }
  return list;
}

void draw(Document& document, const std::string& title, const std::vector<PatchedRow>& rows,
          const std::vector<std::string>& columns) {
  if (rows.empty()) return;
  HeatMap map{{}, {}, columns};
  for (const PatchedRow& row : rows) {
    map.rows.push_back(row.label);
    map.cells.push_back(row.positions);
    map.cells.back().push_back(row.all);
  }
  map.has_two_signs = true;
  document.add_picture({.title = title, .content = map});
}

Document patch(const PatchOptions& options) {
  require<UserError>(options.clean.empty() == options.corrupt.empty() &&
                         options.clean.empty() != options.data.empty(),
                     "give a clean and a corrupt text or --data, one of the two");
  const LoadedModel trained = load_model(options.model);
  Document document;
  const auto pairs = pairs_of(*trained.task, options, document);
  const Patching found = patched(trained, pairs);
  document.data = object({{"pairs", found.pairs}});
  if (options.data.empty()) {
    document.data["tokens"] =
        object({{"clean", pairs[0].clean.words}, {"corrupt", pairs[0].corrupt.words}});
    const Sentence both[] = {pairs[0].clean, pairs[0].corrupt};
    note_unknown_words(document, *trained.task, both);
  }
  document.data["logit_difference"] = object({{"clean", found.clean}, {"corrupt", found.corrupt}});
  document.data["residual"] = rows_json(found.residual);
  document.data["attention"] = rows_json(found.attention);
  document.data["feed_forward"] = rows_json(found.feed_forward);
  document.data["heads"] = rows_json(found.heads);
  document.add_text(
      "logit of the answer to the clean text less that of the answer to the corrupt one: {:.4f} "
      "clean, {:.4f} corrupt\nHow much of the difference comes back when the corrupt text runs "
      "with "
      "one activation of the clean one: 0 nothing, 1 all of it\n",
      found.clean, found.corrupt);
  const auto columns = columns_of(pairs);
  draw(document, "residual stream", found.residual, columns);
  draw(document, "output of attention", found.attention, columns);
  draw(document, "output of feed-forward", found.feed_forward, columns);
  draw(document, "heads", found.heads, columns);
  return document;
}

}  // namespace

Command patch_command() {
  const auto o = std::make_shared<PatchOptions>();
  return {.name = "patch",
          .summary =
              "Show which activations make the difference between two texts (activation patching)",
          .options = {model_argument(o->model),
                      {"CLEAN", &o->clean, "A text"},
                      {"CORRUPT", &o->corrupt,
                       "A text with as many tokens and another answer, which runs with one "
                       "activation of the clean text at a time"},
                      {"--data FILE", &o->data,
                       "Average over the lines clean<TAB>corrupt of a file, all of one length"},
                      word_option(o->word)},
          .has_pictures = true,
          .run = [o](const Stream&) { return patch(*o); }};
}

}  // namespace qkv::commands
