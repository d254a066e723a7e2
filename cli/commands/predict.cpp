#include <algorithm>

#include "cli/commands/shared.h"
#include "cli/terminal.h"
#include "datasets/text.h"
#include "datasets/text_file.h"
#include "inspect/documents/predict.h"
#include "train/config/task_kinds.h"
#include "train/inference/trained_model.h"
#include "train/tasks/ensemble.h"

namespace qkv::commands {
namespace {

struct PredictOptions {
  std::string model;
  std::vector<std::string> texts;
  std::string file, data;
};

/// A text to predict, where it is from, and its line in a file.
struct Question {
  std::string text;
  std::string place;  ///< "texts:3", "text 3"
  std::optional<std::size_t> line = {};
};

/// The lines of a file that are not blank; the blank ones are noted.
std::vector<Question> lines_of(const std::string& file, Document& document) {
  std::vector<Question> texts;
  ReadCallback silent;
  for_each_line(file, silent, [&](std::size_t number, const std::string& text) {
    if (trimmed(text).empty())
      document.add_note("{}:{}: blank line skipped", file, number);
    else
      texts.push_back({text, fmt::format("{}:{}", file, number), number});
  });
  require<UserError>(!texts.empty(), "{}: all of its lines are blank", file);
  return texts;
}

/// The texts of a file in the task's format: the last column, of a translation the first.
std::vector<Question> texts_of(const std::string& file, const LoadedModel& model,
                               Document& document) {
  const bool source_first =
      row_of(task_kinds(), model.config.task.kind).traits.has_source_and_target;
  std::vector<Question> texts;
  Notes notes(document);
  model.task->for_each_line(file, notes, [&](const TsvRow& row) {
    const std::size_t line = std::stoul(row.place.substr(row.place.rfind(':') + 1));
    texts.push_back({source_first ? row.fields.front() : row.fields.back(), row.place, line});
  });
  return texts;
}

std::vector<Question> questions(const PredictOptions& options, const LoadedModel& model,
                                Document& document) {
  if (!options.file.empty()) return lines_of(options.file, document);
  if (!options.data.empty()) return texts_of(options.data, model, document);
  std::vector<Question> texts;
  for (const std::string& text : options.texts)
    texts.push_back({text, fmt::format("text {}", texts.size() + 1)});
  return texts;
}

std::vector<Prediction> predictions_of(std::span<const TrainedModel> models,
                                       const std::string& text) {
  std::vector<std::vector<Prediction>> of_models;
  for (const TrainedModel& model : models) of_models.push_back(model.predict(text));
  return averaged(of_models);
}

/// The first argument and the files and folders that follow it, before the texts.
std::vector<TrainedModel> take_models(PredictOptions& options) {
  std::vector<TrainedModel> models;
  models.push_back(load(options.model));
  std::error_code none;
  const auto text = std::ranges::find_if(options.texts, [&](const std::string& argument) {
    return !std::filesystem::exists(argument, none);
  });
  for (auto model = options.texts.begin(); model != text; ++model) models.push_back(load(*model));
  options.texts.erase(options.texts.begin(), text);
  return models;
}

struct Answers {
  Json json = Json::array();
  Cells rows = {{"text", "word", "answer", "probability", "unknown"}};
  bool has_unknown_words = false;
  std::vector<Sentence> sentences;

  void add(std::span<const TrainedModel> models, const Question& asked) {
    const Task& task = *models.front().parts().task;
    const Sentence sentence = read_sentence(task, asked.text);
    const auto words = documents::words_of(asked.text, task.tokenizer());
    has_unknown_words = has_unknown_words || !words.unknown.empty();
    for (const Prediction& p : predictions_of(models, asked.text)) {
      json.push_back(documents::prediction(p, sentence, words, asked.line));
      rows.push_back(
          {p.text, p.index ? visible(sentence.words[static_cast<std::size_t>(*p.index)]) : "",
           p.is_output ? p.label : visible(p.label), fmt::format("{:.4f}", p.probability),
           fmt::format("{} of {}", words.unknown.size(), words.count)});
    }
    sentences.push_back(sentence);
  }

  /// Without the column of unknown words where no text has one.
  Cells table() const {
    Cells shown = rows;
    if (!has_unknown_words)
      for (auto& row : shown) row.pop_back();
    return shown;
  }
};

Document predict(PredictOptions options) {
  const auto models = take_models(options);
  const bool given[] = {!options.texts.empty(), !options.file.empty(), !options.data.empty()};
  require<UserError>(std::ranges::count(given, true) == 1,
                     "give texts, --data or --file, one of the three");
  Answers answers;
  constexpr int wrong_data = 2;
  Document document;
  Notes notes(document);
  const std::vector<Question> all = questions(options, models.front().parts(), document);
  for (std::size_t i = 0; i < all.size(); ++i) {
    notes.on_item("predicting", i, all.size());
    const Question& asked = all[i];
    try {
      answers.add(models, asked);
    } catch (const UserError& error) {
      if (options.texts.size() == 1) throw;
      document.add_note("{}: {}", asked.place, error.what());
      document.exit_code = wrong_data;
    }
  }
  note_unknown_words(document, *models.front().parts().task, answers.sentences);
  document.data = object({{"predictions", answers.json}});
  document.add_table(answers.table());
  return document;
}

}  // namespace

Command predict_command() {
  const auto o = std::make_shared<PredictOptions>();
  return {
      .name = "predict",
      .summary = "Predict the labels or outputs of texts",
      .options = {model_argument(o->model),
                  {"TEXT", &o->texts,
                   "Sentences; files and folders before them are further models, with which "
                   "probabilities are averaged"},
                  {"--data FILE", &o->data, "File in the task's format, whose texts are predicted"},
                  {"--file FILE", &o->file,
                   "File with a sentence a line; one of several texts without an answer is named, "
                   "and the exit code is 2"}},
      .run = [o](const Stream&) { return predict(*o); }};
}

}  // namespace qkv::commands
