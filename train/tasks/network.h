#pragma once

#include <memory>

#include "layers/linear.h"
#include "layers/model.h"

namespace qkv {

/// A model and the task's output layer on top of it.
struct Network : Module {
  /// `outputs` is the number of classes; `tokens` as for `make_model`.
  Network(const ModelOptions& options, Index vocabulary, Index outputs, Random random,
          std::span<const std::string> tokens = {})
      : model(make_model(options, vocabulary, random, tokens)) {
    if (!options.tied) head.emplace(options.width, outputs, random, options.bias, Role::head);
  }

  /// x [..., D] -> [..., classes]
  Tensor logits(const Tensor& x) const {
    return head ? (*head)(x) : linear(x, model->embedding_table());
  }
  void visit(ModuleVisitor& visit) override {
    model->visit(visit);
    if (head) visit("head", *head);
  }

  std::unique_ptr<Model> model;
  std::optional<Linear> head;  ///< none: tied to the embedding table (Press & Wolf 2017)
};

}  // namespace qkv
