#include "train/inference/trained_model.h"

#include "core/autograd.h"
#include "datasets/text.h"
#include "train/inference/attention.h"
#include "train/inference/continuation.h"
#include "train/run/run.h"

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

TrainedModel::TrainedModel(LoadedModel model)
    : model_(std::make_unique<const LoadedModel>(std::move(model))) {}
TrainedModel::TrainedModel(TrainedModel&&) noexcept = default;
TrainedModel& TrainedModel::operator=(TrainedModel&&) noexcept = default;
TrainedModel::~TrainedModel() = default;

const std::vector<std::string>& TrainedModel::labels() const {
  return model_->task->labels();
}

std::int64_t TrainedModel::step() const {
  return model_->step;
}

bool TrainedModel::continues() const {
  return continues_text(model_->config);
}

std::vector<Prediction> TrainedModel::predict(std::string_view text) const {
  require_utf8(text);
  return model_->task->predict(*model_->network, text);
}

TextVectors TrainedModel::embed(std::string_view text) const {
  const Sentence sentence = read(*model_, text);
  const Recorder recorder = recorded(*model_, sentence);
  return {sentence.words, of_one(recorder.at("static")), of_one(recorder.at("contextual"))};
}

TextAttention TrainedModel::attend(std::string_view text) const {
  Sentence sentence = read(*model_, text);
  sentence.written = model_->task->write(*model_->network, sentence, "");
  return attention_in(*model_->network, sentence, recorded(*model_, sentence));
}

std::string TrainedModel::generate(std::string_view prompt, Index tokens, const Sampling& sampling,
                                   const std::function<void(std::string_view)>& pass_on) const {
  ReadCallback silent;
  const Sentence read = read_prompt(*model_, prompt, silent);
  return continuation_of(*model_, prompt, read, tokens, sampling, pass_on).text;
}

TrainedModel load(const std::filesystem::path& run) {
  return TrainedModel(load_model(run));
}

}  // namespace qkv
