#pragma once

#include <memory>

#include "layers/feed_forward.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/model.h"

namespace qkv {

/// A linear layer, activation and norm before the tied output layer of a BERT (Devlin et al. 2019).
struct OutputTransform : Module {
  explicit OutputTransform(const ModelOptions& options)
      : linear(options.width, options.width, options.bias),
        norm(options.width, options.bias, norm_epsilon(options.kind)),
        activation(options.activation) {}

  /// x [..., D] -> the same shape
  Tensor operator()(const Tensor& x) const { return norm(activated(linear(x), activation)); }
  void visit(ModuleVisitor& visit) override { visit("linear", linear)("norm", norm); }

  Linear linear;
  LayerNorm norm;
  ActivationKind activation;
};

/// A model and the task's output layer on top of it.
struct Network : Module {
  /// `outputs` is the number of classes; `tokens` as for `make_model`.
  Network(const ModelOptions& options, const HeadOptions& head_options, Index vocabulary,
          Index outputs, Random random, std::span<const std::string> tokens = {})
      : model(make_model(options, vocabulary, random, tokens)) {
    if (!head_options.tied) {
      head.emplace(options.width, outputs, options.bias, Role::head);
      initialise(*head, random);
    } else if (options.kind == ModelKind::bert) {
      transform.emplace(options);
      initialise(*transform, random);
      if (options.bias) tied_bias.emplace(Tensor::zeros({outputs}), Role::bias);
    }
  }

  /// x [..., D] -> [..., classes]
  Tensor logits(const Tensor& x) const {
    if (head) return (*head)(x);
    return linear(transform ? (*transform)(x) : x, model->embedding_table(),
                  tied_bias ? tied_bias->value() : Tensor());
  }
  void visit(ModuleVisitor& visit) override {
    model->visit(visit);
    if (transform) visit("output_transform", *transform);
    if (head) visit("head", *head);
    if (tied_bias) visit("output_bias", *tied_bias);
  }

  std::unique_ptr<Model> model;
  std::optional<Linear> head;  ///< none: tied to the embedding table (Press & Wolf 2017)
  std::optional<OutputTransform> transform;  ///< of a BERT whose output is tied
  std::optional<Parameter> tied_bias;        ///< likewise, [classes]
};

}  // namespace qkv
