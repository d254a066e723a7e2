#include <fmt/core.h>
#include <qkv/layers/linear.h>
#include <qkv/optim/optimizer.h>

#if __has_include("core/tensor.h")
#error "a folder of the library is on the include path under its own name"
#endif

struct Classifier : qkv::Module {
  qkv::Linear hidden, out;
  explicit Classifier(qkv::Random& random) : hidden(2, 8, random), out(8, 2, random) {}
  qkv::Tensor operator()(const qkv::Tensor& x) const { return out(qkv::tanh(hidden(x))); }
  void visit(qkv::ModuleVisitor& visit) override { visit("hidden", hidden)("out", out); }
};

int main() {
  const qkv::Tensor x = qkv::Tensor::from({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  const qkv::Indices targets({0, 1, 1, 0}, {4});
  qkv::Random random(1, qkv::Purpose::initialisation);
  Classifier model(random);
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
