#include <algorithm>
#include <iterator>

#include "cli/commands/shared.h"
#include "cli/terminal.h"
#include "core/memory.h"
#include "core/parallel.h"
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

/// The predictions of all models together for each text.
std::vector<TextPredictions> predictions_of(std::span<const TrainedModel> models,
                                            std::span<const Question> asked) {
  std::vector<std::string> texts;
  for (const Question& question : asked) texts.push_back(question.text);
  std::vector<std::vector<TextPredictions>> of_models;
  for (const TrainedModel& model : models) of_models.push_back(model.predict(texts));
  return averaged(std::move(of_models));
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

/// The predictions for a text as JSON and rows of the table.
struct Answer {
  std::vector<Json> json = {};
  Cells rows = {};
  Sentence sentence = {};
  bool has_unknown_words = false;
};

Answer answer_of(const Tokenizer& tokenizer, const Question& asked, TextPredictions found) {
  Answer answer{.sentence = {std::move(found.tokens), std::move(found.ids)}};
  const Sentence& sentence = answer.sentence;
  const auto words = documents::words_of(asked.text, tokenizer);
  answer.has_unknown_words = !words.unknown.empty();
  for (const Prediction& p : found.predictions) {
    answer.json.push_back(documents::prediction(p, sentence, words, asked.line));
    answer.rows.push_back(
        {p.text, p.index ? visible(sentence.words[static_cast<std::size_t>(*p.index)]) : "",
         p.is_output ? p.label : visible(p.label), fmt::format("{:.4f}", p.probability),
         fmt::format("{} of {}", words.unknown.size(), words.count)});
  }
  return answer;
}

struct Answers {
  Json json = Json::array();
  Cells rows = {{"text", "word", "answer", "probability", "unknown"}};
  bool has_unknown_words = false;
  std::vector<Sentence> sentences;

  void add(Answer answer) {
    std::ranges::move(answer.json, std::back_inserter(json));
    std::ranges::move(answer.rows, std::back_inserter(rows));
    has_unknown_words = has_unknown_words || answer.has_unknown_words;
    sentences.push_back(std::move(answer.sentence));
  }

  /// Without the column of unknown words where no text has one.
  Cells table() && {
    if (!has_unknown_words)
      for (auto& row : rows) row.pop_back();
    return std::move(rows);
  }
};

/// The answers to some texts, in their order; one that there is no answer to has its error.
std::vector<std::pair<Answer, std::string>> answers_to(std::span<const Question> asked,
                                                       std::span<const TrainedModel> models) {
  auto predictions = predictions_of(models, asked);
  const Tokenizer& tokenizer = models.front().parts().task->tokenizer();
  std::vector<std::pair<Answer, std::string>> answers(asked.size());
  constexpr Index cost = 1000;
  parallel_for(partition(std::ssize(asked), cost), [&](Index first, Index end) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i) {
      answers[i].second = predictions[i].error;
      if (predictions[i].error.empty())
        answers[i].first = answer_of(tokenizer, asked[i], std::move(predictions[i]));
    }
  });
  return answers;
}

Document predict(PredictOptions options) {
  const auto models = take_models(options);
  const bool given[] = {!options.texts.empty(), !options.file.empty(), !options.data.empty()};
  require<UserError>(std::ranges::count(given, true) == 1,
                     "give texts, --data or --file, one of the three");
  Answers answers;
  Document document;
  Notes notes(document);
  const std::vector<Question> all = questions(options, models.front().parts(), document);
  MemoryPool pool;  // keeps the activations of all parts apart from the answers, which stay
  const MemoryPool::Use use(pool);
  constexpr std::size_t texts_at_once = 512;
  for (std::size_t begin = 0; begin < all.size(); begin += texts_at_once) {
    notes.on_item("predicting", begin, all.size());
    const auto asked = std::span(all).subspan(begin, std::min(texts_at_once, all.size() - begin));
    for (std::size_t i = 0; auto& [answer, error] : answers_to(asked, models)) {
      const std::string& place = asked[i++].place;
      if (error.empty()) {
        answers.add(std::move(answer));
        continue;
      }
      require<UserError>(options.texts.size() != 1, "{}", error);
      document.add_note("{}: {}", place, error);
      document.exit_code = wrong_data;
    }
  }
  note_unknown_words(document, *models.front().parts().task, answers.sentences);
  document.data = object({{"predictions", std::move(answers.json)}});
  document.add_table(std::move(answers).table());
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
