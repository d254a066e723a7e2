#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/kinds.h"
#include "core/shape.h"
#include "datasets/tokenizer.h"
#include "layers/options.h"
#include "train/config/probe.h"
#include "train/config/trainer_options.h"

namespace qkv {

/// See `task_kinds`.
enum class TaskKind {
  word_sense,
  static_embedding,
  classify,
  coreference,
  translate,
  language_model,
  tagging,
  masked_language_model
};

/// The training objective of static embeddings.
enum class Objective { skip_gram, cbow, glove };
inline constexpr auto objectives = std::to_array<Kind<Objective>>({
    {Objective::skip_gram, "skip-gram", "context from word"},
    {Objective::cbow, "cbow", "word from context"},
    {Objective::glove, "glove", "co-occurrence counts"},
});
static_assert(lists_every_kind(objectives));

/// The weights of labels in the training loss.
enum class ClassWeights { none, balanced };
inline constexpr auto class_weights_kinds = std::to_array<Kind<ClassWeights>>({
    {ClassWeights::none, "none", "1"},
    {ClassWeights::balanced, "balanced", "inverse of the label's frequency"},
});
static_assert(lists_every_kind(class_weights_kinds));

/// Treatment of examples whose label the training data do not have.
enum class UnknownLabels { error, skip };
inline constexpr auto unknown_label_policies = std::to_array<Kind<UnknownLabels>>({
    {UnknownLabels::error, "error", "an error that names it"},
    {UnknownLabels::skip, "skip", "leave the example out, with a count"},
});
static_assert(lists_every_kind(unknown_label_policies));

/// The parameters before the first step; see train/start/naive_bayes.h.
enum class InitKind { random, naive_bayes };
inline constexpr auto init_kinds = std::to_array<Kind<InitKind>>({
    {InitKind::random, "random", "independent of the data"},
    {InitKind::naive_bayes, "naive-bayes",
     "log-count ratios of words and labels, so that the model starts as naive Bayes"},
});
static_assert(lists_every_kind(init_kinds));

/// The task and its data; [task].
struct TaskOptions {
  TaskKind kind = TaskKind::word_sense;
  std::string train, valid, test;  ///< files
  std::string data;                ///< one file to split
  /// The files' columns that are the task's, see `Columns`; empty: as the files say.
  std::vector<std::string> columns = {};
  std::string word = {};     ///< whose sense is asked, in files without an index column
  double valid_share = 0.1;  ///< fraction of data, where valid is empty
  double test_share = 0;     ///< fraction of data, where test is empty
  Index folds = 0;  ///< parts of the training examples, one of which is the test data; 0: none
  Index fold = 1;   ///< which of them
  std::optional<TokenizerKind> tokenizer = {};  ///< none: what suits the task, see `cutting_of`
  std::optional<bool> lower_case = {};          ///< likewise
  Index merges = 1000;                          ///< byte-pair merges to learn at most
  Index ngrams = 1;                             ///< length of the longest n-gram of words
  bool truncate = false;                        ///< sentences longer than the model allows
  UnknownLabels unknown_labels = UnknownLabels::error;
  double word_dropout = 0;     ///< a word of frequency n becomes <unk> with probability
                               ///< word_dropout / (word_dropout + n) in training
  double label_smoothing = 0;  ///< probability in [0, 1)
  ClassWeights class_weights = ClassWeights::none;
  Index stride = 1;                ///< tokens from one training window of a text to the next
  double mask_probability = 0.15;  ///< that a token is to be predicted, in (0, 1]
  Index min_count = 1;             ///< minimum frequency of a word; rarer ones become <unk>
  Objective objective = Objective::skip_gram;
  Index window = 5;     ///< context words to either side
  Index negatives = 5;  ///< negative samples per positive pair

  friend bool operator==(const TaskOptions&, const TaskOptions&) = default;
};

/// Everything that a run depends on. train/config/option_list.cpp lists each option once: its key,
/// bounds and help.
struct Config : TrainerOptions {
  TaskOptions task;
  ModelOptions model;
  HeadOptions head;                  ///< model.tied
  InitKind init = InitKind::random;  ///< model.init
  std::vector<Probe> probes;         ///< claims about the trained model

  friend bool operator==(const Config&, const Config&) = default;
};

/// One [[variant]] of a configuration file.
struct Variant {
  std::string name;  ///< as the file says it
  Config config;     ///< the base with the variant's changes, named "<base> - <variant>"
};

struct ConfigFile {
  Config base;
  std::vector<Variant> variants;  ///< each with the probes that are about it
  bool other_data = false;        ///< an override names the training data
};

/// An invalid configuration, in one line: where, which option, expected and got.
struct ConfigError : UserError {
  using UserError::UserError;
};

/// Reads a configuration file. The overrides, such as "train.steps=500", apply to the base; what a
/// variant changes stays changed. An override that names `task.data` takes the place of the file's
/// `task.train`, `task.valid` and `task.test`, one that names `task.train` that of `task.data`. All
/// paths of the result are absolute: the file's lead from where `locate_files` finds them, those of
/// overrides from the working folder. An option that the file or an override sets must have an
/// effect in the base or a variant, one that a variant sets in that variant; where it has none, it
/// has its default. Throws ConfigError.
ConfigFile read_config(const std::filesystem::path& path, std::span<const std::string> overrides);
/// Reads a text as `read_config` reads a file in `folder`; errors call it `source`.
ConfigFile parse_config_file(std::string_view toml, std::string_view source,
                             const std::filesystem::path& folder,
                             std::span<const std::string> overrides);

/// Reads a configuration without variants, such as the one stored in a checkpoint; errors call it
/// `source`. Paths stay as they are. Throws ConfigError.
Config parse_config(std::string_view toml, std::string_view source);

/// Parses the configuration of a new run. Throws ConfigError also for an option without effect.
Config parse_new_config(std::string_view toml, std::string_view source);

/// Makes every relative path of a configuration in `folder` absolute: it leads from `folder`, or
/// from the nearest folder above it in which there is such a file. The working folder plays no
/// part.
void locate_files(Config& config, const std::filesystem::path& folder);

/// Whether a stored configuration has a task: that of a module of a program's own has none
/// (train/loop/module_training.h). Throws ConfigError.
bool has_task(std::string_view toml, std::string_view source);

/// The configuration that was stored in `file`, in whose folder or above it relative paths are.
/// Throws ConfigError, UserError when it has no task.
Config stored_config(std::string_view toml, const std::filesystem::path& file);

/// A configuration as a file in `folder` or below says it: a path leads from the nearest folder
/// above that also holds what it names, so that the whole tree can be moved; it is absolute where
/// there is none but the root, or where `locate_files` would find another file.
Config portable(Config config, const std::filesystem::path& folder);

/// Applies "key=value"s in order. The value is TOML; text and choices need no quotes. Paths lead
/// from the working folder. Throws ConfigError and then leaves `config` as it was.
void apply_overrides(Config& config, std::span<const std::string> overrides);

/// Every option with its value and help. `parse_config` gives back an equal configuration, provided
/// that the options are within their bounds.
std::string to_toml(const Config& config);
/// Every option of a training without task and model.
std::string to_toml(const TrainerOptions& options);

/// The options in which two configurations differ, apart from probes:
/// "train.steps = 40 (now 60)"; empty when there are none.
std::string differing_options(const Config& before, const Config& now);

/// Throws UserError naming the options in which two configurations differ, unless a run may change
/// them when it resumes. `source`: what changed them.
void require_resumable(const Config& before, const Config& now, std::string_view source = "--set");

}  // namespace qkv
