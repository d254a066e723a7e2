#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/option_list.h"

namespace qkv {

class ReadCallback;
class Task;

/// The options that a task goes with.
struct TaskTraits {
  bool predicts_words = false;         ///< the output layer's rows are words: `model.tied`
  bool has_source_and_target = false;  ///< needs an encoder-decoder, which no other task takes
  bool has_labels = false;             ///< its answers are labels of the training data
  bool has_one_label = false;          ///< and each example has one
  bool answers_about_words = false;    ///< any word of a text can be asked about
  Cutting cutting = {};                ///< of its texts, where the config leaves it open
};

/// A kind of task: its name in configurations, what it is, how it is made and what it needs.
struct TaskRow {
  using Tokens = std::vector<std::string>;
  using Vocabularies = std::map<std::string, Tokens>;

  TaskKind value;
  std::string_view name, help;
  /// Reads the data and learns tokens in addition to those `known`; with a null callback takes
  /// `known` as a checkpoint has them.
  std::unique_ptr<Task> (*make)(const Config& config, const Vocabularies& known,
                                ReadCallback* callback);
  TaskTraits traits;
  /// Options that the task cannot work with, apart from what follows from its traits.
  std::optional<Conflict> (*conflict)(const Config& config);
};

/// Every kind, in the order of the enumeration; the table is in train/tasks/task.cpp.
std::span<const TaskRow> task_kinds();

/// Whether a text is a bag of words, without their order, to the task and model: `task.ngrams`.
bool is_bag_of_words(const Config& config);

/// How the texts of a config's task are cut: as its options say, else as suits the task.
Cutting cutting_of(const Config& config);

}  // namespace qkv
