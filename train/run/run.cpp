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
#include "train/run/freeze.h"
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

/// A model without values, for those of a file; no data is read.
LoadedModel unloaded_model(const Config& config, const Task::Vocabularies& vocabularies) {
  LoadedModel unloaded;
  unloaded.config = config;
  unloaded.task = restore_task(config, vocabularies);
  const WithoutStorage without_storage;
  unloaded.network = fresh_network(config, *unloaded.task, Vectors::from_checkpoint);
  return unloaded;
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
  require_training_memory(config, run.task->vocabulary().size(), run.task->outputs(), limit);
  run.network = fresh_network(config, *run.task, vectors);
  tell_vectors(config, *run.network, callback);
  if (vectors == Vectors::from_file && config.init == InitKind::naive_bayes)
    start_as_naive_bayes(*run.network, config.model, *run.task);
  if (auto& head = run.network->head; head && head->bias && !predicts_with_bias(config))
    head->bias->freeze();
  // Only the vector of a text is pooled.
  if (config.model.kind == ModelKind::bert && config.task.kind != TaskKind::classify)
    freeze_parts(*run.network, std::vector<std::string>{"pooler"});
  run.begin();
  return run;
}

/// The tokens of an imported model, or of train.init, which come first in the vocabulary of a run.
Task::Vocabularies known_tokens(const Config& config, const Task::Vocabularies& vocabulary) {
  const bool learns = config.train.init.empty() && !is_imported(cutting_of(config).kind);
  return learns ? Task::Vocabularies() : vocabulary;
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

/// Throws CheckpointError as `Run::load_parameters` does.
void load_model_parameters(Network& network, const Checkpoint& checkpoint,
                           const std::filesystem::path& file) {
  require_equal_heads(network, config_of(checkpoint, file).model.heads, file);
  try {
    load_state(network, checkpoint.model);
  } catch (const ValueError& error) {
    throw CheckpointError(fmt::format("{}: does not hold the model that its config describes: {}",
                                      file.string(), error.what()));
  }
}

}  // namespace

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
  run.restore(checkpoint, file);
  run.init = checkpoint.init;
  return run;
}

std::optional<StepMemory> Run::memory() const {
  const auto budget = memory_budget(config.train);
  if (!budget) return std::nullopt;
  const Index outputs = task->outputs();
  const MemoryNeeds needs = memory_needs(config, task->vocabulary().size(), outputs);
  return StepMemory{*budget, needs.state, needs.gradients,
                    [this, outputs](double tokens, bool recomputed) {
                      return activation_bytes(config, outputs, tokens, recomputed);
                    }};
}

std::vector<std::string> Run::data_summary() const {
  std::vector<std::string> lines;
  if (std::string labels = task->label_summary(); !labels.empty())
    lines.push_back(std::move(labels));
  if (size(Split::valid) == 0)
    lines.emplace_back(
        "no validation data: the best checkpoint is the last; name a file with task.valid, or "
        "let task.valid_share take a fraction of task.data");
  return lines;
}

std::string Run::config_text(const std::filesystem::path& folder) const {
  return to_toml(folder.empty() ? config : portable(config, folder));
}

Checkpoint Run::checkpoint(const std::filesystem::path& folder) const {
  Checkpoint checkpoint = Training::checkpoint(folder);
  checkpoint.vocabulary = task->vocabularies();
  checkpoint.data_hash = data_hash;
  checkpoint.valid_hash = valid_hash;
  checkpoint.init = init;
  return checkpoint;
}

void Run::load_parameters(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  load_model_parameters(*network, checkpoint, file);
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

SavedModel load_model(const std::filesystem::path& model) {
  const std::filesystem::path file = find_checkpoint(model);
  return model_of(read_checkpoint(file, CheckpointPart::without_optimizer), file);
}

LoadedModel fresh_model(const Config& config, const Task::Vocabularies& vocabularies) {
  LoadedModel fresh = unloaded_model(config, vocabularies);
  fresh.network = fresh_network(config, *fresh.task, Vectors::from_checkpoint);
  return fresh;
}

SavedModel model_of(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  SavedModel loaded{unloaded_model(config_of(checkpoint, file), checkpoint.vocabulary),
                    checkpoint.step};
  loaded.init = checkpoint.init;
  load_model_parameters(*loaded.network, checkpoint, file);
  return loaded;
}

}  // namespace qkv
