#pragma once

#include <qkv/layers/linear.h>

/// Two inputs, eight hidden units, two classes.
struct Classifier : qkv::Module {
  qkv::Linear hidden{2, 8}, out{8, 2};
  qkv::Tensor operator()(const qkv::Tensor& x) const { return out(qkv::tanh(hidden(x))); }
  void visit(qkv::ModuleVisitor& visit) override { visit("hidden", hidden)("out", out); }
};

/// The four inputs of XOR, a row each, and its values.
struct Xor {
  qkv::Tensor x = qkv::Tensor::from({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  qkv::Indices targets = qkv::Indices({0, 1, 1, 0}, {4});
};
