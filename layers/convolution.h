#pragma once

#include <memory>
#include <vector>

#include "layers/model.h"

namespace qkv {

/// A convolution over time that keeps the length: the sequence is padded with zeros.
/// `weight` [out, in, K] and `bias` [out] as in PyTorch's Conv1d; the weight starts Kaiming
/// uniform, the bias at 0.
struct Conv1d : Module {
  Conv1d(Index in, Index out, Index kernel);

  /// x [B, T, in] -> [B, T, out]; the receptive field of position t is
  /// [t - (K - 1) / 2, t + K / 2].
  Tensor operator()(const Tensor& x) const;
  void visit(ModuleVisitor& visit) override;

  Parameter weight, bias;
};

/// Parallel convolutions of several kernel widths, each followed by relu; their outputs are
/// concatenated to the width of the input (Kim 2014, "Convolutional Neural Networks for Sentence
/// Classification").
struct ConvolutionLayer : Module {
  /// Throws ValueError when the width is less than the number of kernels.
  explicit ConvolutionLayer(Index width);

  /// x [B, T, D], lengths [B] -> the same shape; padding counts as zeros.
  Tensor operator()(const Tensor& x, const Indices& lengths) const;
  void visit(ModuleVisitor& visit) override { visit("kernels", kernels); }

  std::vector<Conv1d> kernels;
};

/// Embedding and convolution layers. A sentence's vector is the maximum over its tokens.
std::unique_ptr<Model> make_convolution_model(const ModelOptions& options, Index vocabulary);

}  // namespace qkv
