#include "train/inference/trained_model.h"

#include "core/autograd.h"
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
  const Sentence read = read_prompt(parts(), prompt, silent);
  return continuation_of(parts(), prompt, read, tokens, sampling, pass_on).text;
}

TrainedModel load(const std::filesystem::path& run) {
  std::vector<SavedModel> models;
  for (const auto& model : ensemble_of(run)) models.push_back(load_model(model));
  return TrainedModel(std::move(models));
}

}  // namespace qkv
