#include "train/loop/module_training.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "train/loop/session.h"
#include "train/run/check_checkpoint.h"
#include "train/storage/content_hash.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// The mean loss of a split, which is the default evaluation of a problem.
Evaluation mean_loss(const Problem& problem, Split split, Index size, Index batch) {
  const NoGrad no_grad;
  Context context;
  std::vector<Index> indices(static_cast<std::size_t>(batch));
  Evaluation evaluation;
  evaluation.count = size;
  double weight = 0;
  for (Index begin = 0; begin < size; begin += batch) {
    const Index count = std::min(batch, size - begin);
    std::iota(indices.begin(), indices.begin() + count, begin);
    const BatchLoss part =
        problem.loss(split, std::span(indices).first(static_cast<std::size_t>(count)), context);
    evaluation.loss += part.value.item() * part.weight;
    weight += part.weight;
  }
  if (weight > 0) evaluation.loss /= weight;
  return evaluation;
}

/// A module of a program's own in training.
class ModuleTraining final : public Training {
 public:
  ModuleTraining(Module& module, const Problem& problem, TrainerOptions options)
      : module_(module), problem_(problem), options_(std::move(options)) {
    check();
    begin();
  }

  const TrainerOptions& options() const override { return options_; }
  Module& module() const override { return module_; }
  Index size(Split split) const override {
    return split == Split::train   ? problem_.train
           : split == Split::valid ? problem_.valid
                                   : problem_.test;
  }
  Index tokens(Index) const override { return 1; }
  BatchLoss loss(std::span<const Index> examples, Context& context) const override {
    return problem_.loss(Split::train, examples, context);
  }
  Evaluation evaluate(Split split) const override {
    return problem_.evaluate ? problem_.evaluate(split)
                             : mean_loss(problem_, split, size(split), options_.train.batch);
  }
  std::optional<StepMemory> memory() const override { return std::nullopt; }
  std::vector<std::string> data_summary() const override { return {}; }
  std::string config_text(const fs::path&) const override { return to_toml(options_); }
  Checkpoint checkpoint(const fs::path& folder) const override {
    Checkpoint checkpoint = Training::checkpoint(folder);
    checkpoint.data_hash = data_hash();
    return checkpoint;
  }
  void load_parameters(const Checkpoint& checkpoint, const fs::path& file) override {
    try {
      load_state(module_, checkpoint.model);
    } catch (const ValueError& error) {
      throw CheckpointError(
          fmt::format("{}: does not hold this module: {}", file.string(), error.what()));
    }
  }

  /// Continues from a checkpoint of the same problem.
  void resume_from(const Checkpoint& checkpoint, const fs::path& file, Callback& callback) {
    require<UserError>(!has_task(checkpoint.config, file.string()),
                       "{}: is of a run of a config, not of a program's own module; choose "
                       "another folder",
                       file.string());
    check_checkpoint(checkpoint, options_, file);
    Config now;
    static_cast<TrainerOptions&>(now) = options_;
    Config before = parse_config(checkpoint.config, file.string());
    before.name = now.name;  // a folder may be renamed
    require_resumable(before, now, file.string());
    if (const std::string changes = differing_options(before, now); !changes.empty())
      callback.on_message(
          fmt::format("{}: changed since the last checkpoint: {}", file.string(), changes));
    require<UserError>(checkpoint.data_hash == data_hash(),
                       "{}: the splits have other sizes than when the training "
                       "started; restore the data or choose another folder",
                       file.string());
    restore(checkpoint, file);
  }

 private:
  /// Throws UserError for options that would have no effect, or contradict each other.
  void check() const {
    const TrainOptions& train = options_.train;
    require<UserError>(train.init.empty() && train.memory.empty() && !train.tensorboard,
                       "train.init, train.memory and train.tensorboard are options of a config's "
                       "model; a module of a program's own has none of them");
    require<UserError>(problem_.train > 0 && problem_.loss,
                       "the problem needs training examples and a loss");
    require<UserError>(train.patience == 0 || problem_.valid > 0,
                       "train.patience needs validation examples");
    parse_config(to_toml(options_), "options");  // within their bounds, without conflicts
  }

  /// XXH3 of the sizes of the splits, on which the order of training depends.
  std::string data_hash() const {
    ContentHash hash;
    const std::array sizes = {problem_.train, problem_.valid, problem_.test};
    hash.add(std::as_bytes(std::span(sizes)));
    return hash.text();
  }

  Module& module_;
  const Problem& problem_;
  TrainerOptions options_;
};

}  // namespace

Outcome train(Module& module, const Problem& problem, const TrainerOptions& options,
              const fs::path& folder, Callback& callback) {
  TrainerOptions named = options;
  if (named.name.empty()) named.name = folder.filename().string();
  ModuleTraining training(module, problem, std::move(named));
  RunFolder run(folder);
  run.lock();
  if (!run.holds_checkpoints()) return start(training, run, callback);
  const auto [checkpoint, file] = newest_valid_checkpoint(run, callback);
  training.resume_from(checkpoint, file, callback);
  if (auto outcome = finished(training, run, callback)) return *outcome;
  return resume(training, run, callback);
}

Outcome train(Module& module, const Problem& problem, const TrainerOptions& options,
              const fs::path& folder) {
  Callback silent;
  return train(module, problem, options, folder, silent);
}

}  // namespace qkv
