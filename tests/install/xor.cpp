#include <fmt/format.h>
#include <qkv/optim/optimizer.h>

#include "classifier.h"

#if __has_include("core/tensor.h")
#error "a folder of the library is on the include path under its own name"
#endif

int main() {
  const auto [x, targets] = Xor();
  Classifier model;
  qkv::initialise(model, 1);
  const auto parameters = qkv::parameters(model);
  const auto optimizer = qkv::make_optimizer({.kind = qkv::OptimizerKind::adam});
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    qkv::Tensor value = qkv::cross_entropy(model(x), targets);
    loss = value.item();
    optimizer->step(parameters, qkv::gradients_of(std::move(value)), 0.05, step);
  }
  fmt::print("loss {:.4f}\n", loss);
  return loss < 0.05 ? 0 : 1;
}
