#include "train/inference/trained_model.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "datasets/text.h"
#include "train/inference/attention.h"
#include "train/inference/continuation.h"
#include "train/run/run.h"
#include "train/tasks/ensemble.h"

namespace qkv {
namespace {

void require_utf8(std::string_view text) {
  require<UserError>(is_utf8(text), "the text is not valid UTF-8");
}

Sentence read(const LoadedModel& model, std::string_view text) {
  require_utf8(text);
  return model.task->read(text);
}

/// The intermediate results of a forward pass over a sentence.
Recorder recorded(const LoadedModel& model, const Sentence& sentence) {
  const NoGrad no_grad;
  Recorder recorder(*model.network);
  Context context({.recorder = &recorder});
  model.task->scores(*model.network, sentence, 0, context);
  return recorder;
}

std::vector<TextPredictions> predictions_of(const SavedModel& model,
                                            std::span<const std::string> texts) {
  std::vector<TextPredictions> results(texts.size());
  std::vector<ReadText> read(texts.size());
  constexpr Index reading_cost = 1000;
  parallel_for(partition(std::ssize(texts), reading_cost), [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) try {
        require_utf8(texts[i]);
        read[i] = model.task->read_answerable(texts[i]);
      } catch (const UserError& error) {
        results[i].error = error.what();
      }
  });
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (results[i].error.empty()) order.push_back(i);
  const auto length = [&](std::size_t i) { return read[i].sentence.ids.size(); };
  std::ranges::stable_sort(order, {}, length);
  MemoryPool own;
  MemoryPool* const callers = Execution::current().memory;
  const MemoryPool::Use use(callers ? *callers : own);
  Context context;
  for (auto next = order.begin(); next != order.end();) {
    constexpr std::size_t most_tokens = 4096;  // padding included
    const auto first = next;
    std::vector<ReadText> batch;
    do {
      batch.push_back(std::move(read[*next++]));
    } while (next != order.end() && (batch.size() + 1) * length(*next) <= most_tokens);
    auto predictions = model.task->predictions(*model.network, batch, context);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Sentence& sentence = batch[i].sentence;
      results[first[static_cast<std::ptrdiff_t>(i)]] = {
          std::move(predictions[i]), std::move(sentence.words), std::move(sentence.ids)};
    }
  }
  return results;
}

/// [1, T, D] -> [T, D]
Tensor of_one(const Tensor& x) {
  return x.detach().with_shape({x.dim(1), x.dim(2)});
}

}  // namespace

TrainedModel::TrainedModel(SavedModel model) {
  models_.push_back(std::move(model));
}
TrainedModel::TrainedModel(std::vector<SavedModel> models) : models_(std::move(models)) {}
TrainedModel::TrainedModel(TrainedModel&&) noexcept = default;
TrainedModel& TrainedModel::operator=(TrainedModel&&) noexcept = default;
TrainedModel::~TrainedModel() = default;

const SavedModel& TrainedModel::parts() const {
  return models_.front();
}

const std::vector<std::string>& TrainedModel::labels() const {
  return parts().task->labels();
}

std::int64_t TrainedModel::step() const {
  return parts().step;
}

bool TrainedModel::continues() const {
  return continues_text(parts().config);
}

std::vector<Prediction> TrainedModel::predict(std::string_view text) const {
  require_utf8(text);
  std::vector<std::vector<Prediction>> of_models;
  for (const SavedModel& model : models_)
    of_models.push_back(model.task->predict(*model.network, text));
  return averaged(of_models);
}

std::vector<TextPredictions> TrainedModel::predict(std::span<const std::string> texts) const {
  std::vector<std::vector<TextPredictions>> of_models;
  for (const SavedModel& model : models_) of_models.push_back(predictions_of(model, texts));
  return averaged(std::move(of_models));
}

TextVectors TrainedModel::embed(std::string_view text) const {
  const Sentence sentence = read(parts(), text);
  const Recorder recorder = recorded(parts(), sentence);
  return {sentence.words, of_one(recorder.at("static")), of_one(recorder.at("contextual"))};
}

TextAttention TrainedModel::attend(std::string_view text) const {
  Sentence sentence = read(parts(), text);
  sentence.written = parts().task->write(*parts().network, sentence, "");
  return attention_in(*parts().network, sentence, recorded(parts(), sentence));
}

std::string TrainedModel::generate(std::string_view prompt, Index tokens, const Sampling& sampling,
                                   const std::function<void(std::string_view)>& pass_on) const {
  ReadCallback silent;
  return continuation_of(parts(), read_prompt(parts(), prompt, silent), tokens, sampling, pass_on)
      .text;
}

std::vector<std::string> TrainedModel::generate(std::span<const std::string> prompts, Index tokens,
                                                const Sampling& sampling) const {
  ReadCallback silent;
  std::vector<Prompt> read;
  for (const std::string& prompt : prompts) read.push_back(read_prompt(parts(), prompt, silent));
  std::vector<std::string> texts;
  for (Continuation& written : continuations_of(parts(), read, tokens, sampling))
    texts.push_back(std::move(written.text));
  return texts;
}

TrainedModel load(const std::filesystem::path& run) {
  std::vector<SavedModel> models;
  for (const auto& model : ensemble_of(run)) models.push_back(load_model(model));
  return TrainedModel(std::move(models));
}

}  // namespace qkv
