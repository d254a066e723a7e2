#pragma once

#include "train/config/option_list.h"
#include "train/tasks/task.h"

/// The tasks that are classes in files of their own, for the table in task.cpp.
namespace qkv {

/// Makes a task of class `T` as `TaskRow::make` does; `Given` are what its constructor takes
/// besides the config.
template <class T, const auto&... Given>
std::unique_ptr<Task> made(const Config& config, const Task::Vocabularies& known,
                           ReadCallback* callback) {
  auto task = std::make_unique<T>(config, Given...);
  callback ? task->learn(config, known, *callback) : task->restore(known);
  return task;
}

std::unique_ptr<Task> make_language_model(const Config& config, const Task::Vocabularies& known,
                                          ReadCallback* callback);
std::unique_ptr<Task> make_masked_language_model(const Config& config,
                                                 const Task::Vocabularies& known,
                                                 ReadCallback* callback);
std::unique_ptr<Task> make_static_embedding(const Config& config, const Task::Vocabularies& known,
                                            ReadCallback* callback);
std::unique_ptr<Task> make_tagging(const Config& config, const Task::Vocabularies& known,
                                   ReadCallback* callback);
std::unique_ptr<Task> make_translation(const Config& config, const Task::Vocabularies& known,
                                       ReadCallback* callback);

/// Options that a task cannot work with, see `TaskRow::conflict`.
std::optional<Conflict> language_model_conflict(const Config& config);
std::optional<Conflict> static_embedding_conflict(const Config& config);
std::optional<Conflict> tagging_conflict(const Config& config);
std::optional<Conflict> translation_conflict(const Config& config);

}  // namespace qkv
