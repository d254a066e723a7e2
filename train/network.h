#pragma once

#include <memory>

#include "layers/linear.h"
#include "layers/model.h"

namespace qkv {

/// What is trained: a model and the task's output layer on top of it.
struct Network : Module {
  /// `outputs` is the number of classes.
  Network(const ModelOptions& options, Index vocabulary, Index outputs, Random random)
      : model(make_model(options, vocabulary, random)), head(options.width, outputs, random) {}

  void visit(ModuleVisitor& visit) override {
    model->visit(visit);
    visit("head", head);
  }

  std::unique_ptr<Model> model;
  Linear head;
};

}  // namespace qkv
