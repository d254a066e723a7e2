#pragma once

#include <memory>
#include <utility>

#include "train/tasks/task.h"

namespace qkv {

/// A task that forwards to another what training asks for, to be overridden in part.
class ForwardingTask : public Task {
 public:
  ForwardingTask(const Config& config, std::shared_ptr<const Task> task)
      : Task(config), task_(std::move(task)) {
    restore_tokens(task_->vocabularies());
  }

  Index outputs() const override { return task_->outputs(); }
  Index size(Split split) const override { return task_->size(split); }
  void for_each_ids_of(Split split, const IdsSink& sink) const override {
    task_->for_each_ids_of(split, sink);
  }
  LabelledText example(Split split, Index i) const override { return task_->example(split, i); }
  Index tokens(Index example) const override { return task_->tokens(example); }
  BatchLoss loss(const Network& network, std::span<const Index> examples,
                 Context& context) const override {
    return task_->loss(network, examples, context);
  }
  using Task::evaluate;
  Evaluation evaluate(const Network& network, Split split,
                      const EvaluationOptions& options) const override {
    return task_->evaluate(network, split, options);
  }
  Evaluation evaluate(const Network& network, const std::filesystem::path& file,
                      ReadCallback& callback, const EvaluationOptions& options) const override {
    return task_->evaluate(network, file, callback, options);
  }
  std::vector<std::string> metric_names() const override { return task_->metric_names(); }

 private:
  std::shared_ptr<const Task> task_;
};

}  // namespace qkv
