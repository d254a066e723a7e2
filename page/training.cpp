#include "page/training.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/anomaly.h"
#include "inspect/documents/evaluation.h"
#include "train/exchange/exchange.h"
#include "train/loop/updater.h"
#include "train/loop/validation.h"
#include "train/run/run.h"
#include "train/storage/content_hash.h"

namespace qkv::page {
namespace {

constexpr const char* source = "page";  // what errors call the config

std::string score_name(const Run& run) {
  const std::string& select = run.config.train.select;
  return select.empty() ? run.task->metric_names().front() : select;
}

Split split_of(const std::string& name) {
  for (const Split split : {Split::train, Split::valid, Split::test})
    if (to_string(split) == name) return split;
  throw UserError(
      fmt::format("\"split\" of the request is \"{}\"; it must be train, valid or test", name));
}

/// The parameters of a checkpoint one after the other, in the order of the network.
std::string bytes_of(const Checkpoint& checkpoint, std::span<const NamedParameter> order) {
  std::string bytes;
  for (const auto& [path, parameter] : order) {
    const auto elements = std::as_bytes(checkpoint.model.at(path).data<float>());
    bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size());
  }
  return bytes;
}

}  // namespace

/// A run that is trained.
struct Training::Session {
  Session(const Config& config, std::shared_ptr<const Task> task)
      : run(start_run(config, silent_reading, std::move(task))), updater(run) {}

  /// Takes a step and, where the training loop evaluates the model after it, what follows from that
  /// for the run. Only early stopping needs the evaluation itself.
  void step() {
    const MemoryPool::Use use(pool);
    std::optional<DetectAnomaly> detect;
    if (run.config.train.on_divergence == OnDivergence::detect) detect.emplace();
    latest = updater.step();
    if (run.step < run.last_step && run.step % run.config.train.eval_every != 0) return;
    take_interval_loss(run);
    if (run.config.train.patience == 0) return;
    const Evaluation valid = evaluate_now(run, Split::valid);
    updater.require_usable("the validation loss", valid.loss);
    take_if_best(run, valid);
  }

  MemoryPool pool;
  Run run;
  Updater updater;
  StepResult latest;
};

Training::Training(Files& files) : files_(files) {}
Training::~Training() = default;

Training::Session& Training::session() {
  require<UserError>(session_ != nullptr, "there is no training; call \"train\" first");
  return *session_;
}

Json Training::train(const Request& request) {
  const Config config = parse_new_config(request.text("config"), source);
  const bool is_read = request.flag("same_files") && have_equal_tasks(session().run.config, config);
  session_ = std::make_unique<Session>(config, is_read ? session().run.task : nullptr);
  const Run& run = session_->run;
  Json examples;
  for (const Split split : {Split::train, Split::valid, Split::test})
    examples[std::string(to_string(split))] = run.task->size(split);
  return object({{"parameters", parameter_count(*run.network)},
                 {"steps", run.last_step},
                 {"examples", std::move(examples)},
                 {"labels", run.task->labels()},
                 {"tokens", run.task->vocabulary().size()},
                 {"score_name", score_name(run)}});
}

Json Training::step(const Request& request) {
  Session& now = session();
  Json losses = Json::array();
  for (Index left = request.integer("count"); left > 0 && !is_finished(now.run); --left) {
    now.step();
    losses.push_back(now.latest.loss);
  }
  return object({{"step", now.run.step},
                 {"losses", std::move(losses)},
                 {"learning_rate", now.latest.learning_rate},
                 {"gradient_norm", now.latest.gradient_norm},
                 {"finished", is_finished(now.run)}});
}

Json Training::evaluate(const Request& request) {
  const Run& run = session().run;
  const std::string name = request.text("split");
  const Split split = split_of(name);
  require<UserError>(run.task->size(split) > 0, "the config names no {} data", name);
  return to_json(evaluate_now(run, split));
}

Json Training::parameters(const Request& request) {
  const Run& run = session().run;
  const Checkpoint now = run.checkpoint({});
  files_["parameters"] = bytes_of(now, run.parameters);
  Json document = object({{"step", now.step}, {"checksum", checksum_of(now.model)}});
  if (request.flag("brief")) return document;
  document["config"] = now.config;
  document["vocabulary"] = now.vocabulary;
  return document;
}

Json Training::export_model(const Request&) {
  const Run& run = session().run;
  files_["model.safetensors"] = safetensors_bytes(exported(run.checkpoint({}), source, run.config));
  return Json::object();
}

}  // namespace qkv::page
