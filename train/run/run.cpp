#include "train/run/run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/memory_limit.h"
#include "layers/attention.h"
#include "train/config/option_list.h"
#include "train/config/task_kinds.h"
#include "train/config/toml_document.h"
#include "train/memory/memory_needs.h"
#include "train/run/check_checkpoint.h"
#include "train/run/transfer.h"
#include "train/start/naive_bayes.h"
#include "train/storage/content_hash.h"
#include "train/storage/durable_file.h"
#include "train/tasks/splits.h"

namespace qkv {
namespace {

/// Where the static vectors of a config's model.embedding_file come from.
enum class Vectors { from_file, from_checkpoint };

std::unique_ptr<Network> fresh_network(const Config& config, const Task& task, Vectors vectors) {
  ModelOptions model = config.model;
  if (vectors == Vectors::from_checkpoint) model.embedding_file.clear();
  const Index vocabulary = task.vocabulary().size();
  require_network_memory(model, config.head, vocabulary, task.outputs(), memory_limit());
  require<UserError>(model.embedding != EmbeddingKind::one_hot || model.width == vocabulary,
                     "model.embedding \"one-hot\" needs model.width = {}, the size of the "
                     "vocabulary, got {}",
                     vocabulary, model.width);
  return std::make_unique<Network>(model, config.head, vocabulary, task.outputs(),
                                   Random(config.seed, Purpose::initialisation),
                                   task.vocabulary().tokens());
}

/// Says what of a config's model.embedding_file the model has.
void tell_vectors(const Config& config, const Network& network, ReadCallback& callback) {
  const VectorsFound& vectors = network.model->vectors;
  const std::string& file = config.model.embedding_file;
  if (vectors.found == 0) return;
  callback.on_message(fmt::format("{}: vectors of {} of the {} words of the vocabulary", file,
                                  vectors.found, vectors.words));
  if (vectors.repeated > 0)
    callback.on_message(
        fmt::format("{}: {} vectors left out: their words had one before", file, vectors.repeated));
  if (vectors.lacks_line_end)
    callback.on_message(fmt::format("{}: the last line has no end; is the file complete?", file));
}

/// The steps of all epochs, the last of which may be begun.
std::int64_t last_step_of(const TrainOptions& train, Index examples) {
  if (train.epochs == 0) return train.steps;
  const auto per_step = static_cast<double>(train.batch * train.accumulate);
  const double steps = train.epochs * static_cast<double>(examples) / per_step;
  // Rounding errors begin no step: 1.1 epochs of 100 examples are 110.00000000000001.
  constexpr double rounding = 1e-9;
  return std::max<std::int64_t>(std::llround(std::ceil(steps * (1 - rounding))), 1);
}

/// Throws UserError when options of early stopping or of the best checkpoint do not fit the task.
void check_selection(const Config& config, const Task& task) {
  const TrainOptions& train = config.train;
  require<UserError>(train.patience == 0 || task.size(Split::valid) > 0,
                     "train.patience needs validation data; name a file with task.valid, or let "
                     "task.valid_share take a fraction of task.data");
  const std::vector<std::string> metrics = task.metric_names();
  require<UserError>(train.select.empty() || train.select == "loss" ||
                         std::ranges::find(metrics, train.select) != metrics.end(),
                     "train.select \"{}\" is no metric of this task; it has: loss, {}",
                     train.select, fmt::format("{}", fmt::join(metrics, ", ")));
}

/// A run at its start. `known`: token lists that it has from train.init; without `task`, its data
/// are read.
Run assembled(const Config& config, Vectors vectors, const Task::Vocabularies& known,
              ReadCallback& callback, std::shared_ptr<const Task> task = nullptr) {
  Run run;
  run.config = config;
  const auto limit = memory_limit();
  require_training_memory(config, 0, 0, limit);  // before the data are read
  run.task = task ? std::move(task) : make_task(config, known, callback);
  check_selection(config, *run.task);
  run.last_step = last_step_of(config.train, run.task->size(Split::train));
  require_training_memory(config, run.task->vocabulary().size(), run.task->outputs(), limit);
  run.network = fresh_network(config, *run.task, vectors);
  tell_vectors(config, *run.network, callback);
  if (vectors == Vectors::from_file && config.init == InitKind::naive_bayes)
    start_as_naive_bayes(*run.network, config.model, *run.task);
  freeze_parts(*run.network, config.train.freeze);
  if (auto& head = run.network->head; head && head->bias && !predicts_with_bias(config))
    head->bias->freeze();
  // Only the vector of a text is pooled.
  if (config.model.kind == ModelKind::bert && config.task.kind != TaskKind::classify)
    freeze_parts(*run.network, std::vector<std::string>{"pooler"});
  run.parameters = parameters(*run.network);
  OptimizerOptions optimizer = config.optimizer;
  if (config.train.on_divergence == OnDivergence::detect) optimizer.require_gradients = true;
  run.optimizer = make_optimizer(optimizer);
  if (config.train.ema > 0) run.average.emplace(config.train.ema);
  return run;
}

/// The tokens of an imported model, or of train.init, which come first in the vocabulary of a run.
Task::Vocabularies known_tokens(const Config& config, const Task::Vocabularies& vocabulary) {
  const bool learns = config.train.init.empty() && !is_imported(cutting_of(config).kind);
  return learns ? Task::Vocabularies() : vocabulary;
}

/// With averaging, the prefix of the parameters themselves in a checkpoint's optimizer state.
constexpr std::string_view live = "live.";

/// Moves the parameters themselves out of the optimizer state of a checkpoint whose model is their
/// average. Throws ValueError.
void restore_average(Run& run, std::map<std::string, Tensor>& state) {
  if (run.average) run.average->load(state_of(*run.network));
  for (const auto& [path, parameter] : run.parameters) {
    const auto found = state.find(std::string(live) + path);
    if (found == state.end()) continue;
    require<ValueError>(found->second.shape() == parameter->shape(),
                        "{} has shape {} instead of {}", found->first, found->second.shape(),
                        parameter->shape());
    parameter->assign(found->second);
    state.erase(found);
  }
}

std::string hash_of(const Task& task, Split split) {
  if (task.size(split) == 0) return "";
  ContentHash hash;
  task.for_each_ids_of(split, [&](std::span<const std::int32_t> ids) { hash.add(as_bytes(ids)); });
  return hash.text();
}

void add_hashes(Run& run) {
  run.data_hash = hash_of(*run.task, Split::train);
  run.valid_hash = hash_of(*run.task, Split::valid);
}

/// Throws UserError when a split has another hash `now` than at the start of the run. An imported
/// model has none.
void require_unchanged(std::string_view split, const std::string& source, const std::string& now,
                       const std::string& then, const std::filesystem::path& file) {
  require<UserError>(then.empty() || then == now,
                     "{}: the {} data {} has changed since the run started (XXH3 hash {}, then "
                     "{}); restore the data or start a new run",
                     file.string(), split, source, now, then);
}

/// Throws CheckpointError when a network divides its projections into another number of heads than
/// the checkpoint's model, which their shapes do not show.
void require_equal_heads(Network& network, Index heads, const std::filesystem::path& file) {
  for (const auto& [path, attention] : modules<MultiHeadAttention>(network))
    require<CheckpointError>(!attention->w_v || attention->options.heads == heads,
                             "{}: its model has model.heads = {}, and {} of this one has {}; give "
                             "this one as many",
                             file.string(), heads, path, attention->options.heads);
}

}  // namespace

bool is_finished(const Run& run) {
  const TrainOptions& train = run.config.train;
  // `step` and `best_step` are those of evaluations or later.
  const std::int64_t without_better =
      run.step / train.eval_every - run.best_step / train.eval_every;
  return run.step >= run.last_step ||
         (train.patience > 0 && run.best_step > 0 && without_better >= train.patience);
}

Run start_run(const Config& config, ReadCallback& callback, std::shared_ptr<const Task> task) {
  std::optional<InitialModel> from;
  if (!config.train.init.empty()) from = read_initial_model(config);
  Run run = assembled(config, Vectors::from_file,
                      known_tokens(config, from ? from->vocabulary : Task::Vocabularies()),
                      callback, std::move(task));
  if (from) {
    const auto lines = load_initial(*run.network, run.task->vocabularies(), *from);
    for (const std::string& line : lines) callback.on_message(line);
    run.init = fmt::format("{}", fmt::join(lines, "\n"));
  }
  add_hashes(run);
  return run;
}

Run restore_run(const Config& config, const Checkpoint& checkpoint,
                const std::filesystem::path& file, ReadCallback& callback) {
  check_checkpoint(checkpoint, config, file);
  Run run = assembled(config, Vectors::from_checkpoint, known_tokens(config, checkpoint.vocabulary),
                      callback);
  require<UserError>(run.task->vocabularies() == checkpoint.vocabulary,
                     "{}: the training data has other words or labels than when the run started; "
                     "restore the data or start a new run",
                     file.string());
  add_hashes(run);
  require_unchanged("training", source_of(config.task), run.data_hash, checkpoint.data_hash, file);
  require_unchanged("validation",
                    config.task.valid.empty() ? source_of(config.task) : config.task.valid,
                    run.valid_hash, checkpoint.valid_hash, file);
  load_parameters(*run.network, checkpoint, file);
  try {
    auto state = checkpoint.optimizer;
    restore_average(run, state);
    run.optimizer->load_state(run.parameters, state);
  } catch (const ValueError& error) {
    throw CheckpointError(fmt::format("{}: {}", file.string(), error.what()));
  }
  const auto count = [&](const char* name) {
    return static_cast<std::int64_t>(checkpoint.progress.at(name));
  };
  run.step = checkpoint.step;
  run.updates = run.step == 0 ? 0 : count("updates");
  run.init = checkpoint.init;
  run.interval_loss = checkpoint.progress.at("interval_loss");
  run.interval_steps = count("interval_steps");
  run.best_score = checkpoint.progress.at("best_score");
  run.best_loss = checkpoint.progress.at("best_loss");
  run.best_step = count("best_step");
  run.metrics = checkpoint.metrics;
  return run;
}

Checkpoint checkpoint_of(const Run& run, const std::filesystem::path& folder) {
  Checkpoint checkpoint;
  checkpoint.step = run.step;
  checkpoint.config = to_toml(folder.empty() ? run.config : portable(run.config, folder));
  checkpoint.model = state_of(*run.network);
  checkpoint.optimizer = run.optimizer->state();
  if (run.average && !run.average->values().empty()) {  // empty before the first update
    for (const auto& [path, value] : checkpoint.model)
      checkpoint.optimizer[std::string(live) + path] = value;
    checkpoint.model = run.average->values();
  }
  checkpoint.vocabulary = run.task->vocabularies();
  checkpoint.progress = {{"interval_loss", run.interval_loss},
                         {"interval_steps", static_cast<double>(run.interval_steps)},
                         {"best_score", run.best_score},
                         {"best_loss", run.best_loss},
                         {"best_step", static_cast<double>(run.best_step)},
                         {"updates", static_cast<double>(run.updates)},
                         {"permuted_examples", 1}};
  checkpoint.metrics = run.metrics;
  checkpoint.data_hash = run.data_hash;
  checkpoint.valid_hash = run.valid_hash;
  checkpoint.init = run.init;
  return checkpoint;
}

void load_parameters(Network& network, const Checkpoint& checkpoint,
                     const std::filesystem::path& file) {
  require_equal_heads(network, config_of(checkpoint, file).model.heads, file);
  try {
    load_state(network, checkpoint.model);
  } catch (const ValueError& error) {
    throw CheckpointError(fmt::format("{}: does not hold the model that its config describes: {}",
                                      file.string(), error.what()));
  }
}

Config config_of(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  return stored_config(checkpoint.config, file);
}

Config config_of(const RunFolder& folder) {
  return stored_config(read_file(folder.config(), longest_toml), folder.config());
}

LoadedModel untrained(const LoadedModel& model) {
  LoadedModel fresh;
  fresh.config = model.config;
  fresh.task = restore_task(model.config, model.task->vocabularies());
  const bool has_file = std::filesystem::is_regular_file(fresh.config.model.embedding_file);
  fresh.network = fresh_network(fresh.config, *fresh.task,
                                has_file ? Vectors::from_file : Vectors::from_checkpoint);
  if (const std::string& init = fresh.config.train.init; std::filesystem::exists(init))
    load_initial(*fresh.network, fresh.task->vocabularies(), read_initial_model(fresh.config));
  return fresh;
}

LoadedModel with_options(const LoadedModel& model, const ModelOptions& options) {
  Config config = model.config;
  config.model = options;
  LoadedModel changed = fresh_model(config, model.task->vocabularies());
  changed.step = model.step;
  std::map<std::string, std::shared_ptr<Parameter>> by_path;
  for (const auto& [path, parameter] : parameters(*changed.network)) by_path[path] = parameter;
  for (const auto& [path, parameter] : parameters(*model.network))
    if (const auto found = by_path.find(path); found != by_path.end())
      found->second->assign(parameter->value().detach());
  return changed;
}

std::unique_ptr<Task> task_with_data(const LoadedModel& model, ReadCallback& callback) {
  return make_task(model.config, known_tokens(model.config, model.task->vocabularies()), callback);
}

LoadedModel load_model(const std::filesystem::path& model) {
  const std::filesystem::path file = find_checkpoint(model);
  return model_of(read_checkpoint(file, CheckpointPart::without_optimizer), file);
}

LoadedModel fresh_model(const Config& config, const Task::Vocabularies& vocabularies) {
  LoadedModel fresh;
  fresh.config = config;
  fresh.task = restore_task(config, vocabularies);
  fresh.network = fresh_network(config, *fresh.task, Vectors::from_checkpoint);
  return fresh;
}

LoadedModel model_of(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  LoadedModel loaded = fresh_model(config_of(checkpoint, file), checkpoint.vocabulary);
  loaded.step = checkpoint.step;
  loaded.init = checkpoint.init;
  load_parameters(*loaded.network, checkpoint, file);
  return loaded;
}

std::int64_t load_best(Run& run, const RunFolder& folder) {
  run.optimizer = make_optimizer(run.config.optimizer);
  run.average.reset();
  const std::filesystem::path file = find_checkpoint(folder.path());
  const Checkpoint checkpoint = read_checkpoint(file, CheckpointPart::without_optimizer);
  load_parameters(*run.network, checkpoint, file);
  return checkpoint.step;
}

}  // namespace qkv
