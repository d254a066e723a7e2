// Training that stops and continues from a checkpoint ends with the same bits as training that does
// not.
#include <fmt/format.h>
#include <qkv/optim/optimizer.h>
#include <qkv/train/storage/checkpoint.h>

#include "classifier.h"

namespace {

struct Training {
  Classifier model;
  std::vector<qkv::NamedParameter> parameters = qkv::parameters(model);
  std::unique_ptr<qkv::Optimizer> optimizer =
      qkv::make_optimizer({.kind = qkv::OptimizerKind::adam});

  Training() { qkv::initialise(model, 1); }
  void run(std::int64_t from, std::int64_t to) {
    const auto [x, targets] = Xor();
    for (std::int64_t step = from; step < to; ++step)
      optimizer->step(parameters, qkv::gradients_of(qkv::cross_entropy(model(x), targets)), 0.05,
                      step);
  }
};

}  // namespace

int main() {
  Training whole;
  whole.run(0, 200);

  Training first;
  first.run(0, 120);
  qkv::write_checkpoint(
      "xor.h5",
      {.step = 120, .model = qkv::state_of(first.model), .optimizer = first.optimizer->state()});

  Training second;
  const qkv::Checkpoint checkpoint = qkv::read_checkpoint("xor.h5");
  qkv::load_state(second.model, checkpoint.model);
  second.optimizer->load_state(second.parameters, checkpoint.optimizer);
  second.run(checkpoint.step, 200);

  const auto expected = qkv::state_of(whole.model);
  for (const auto& [path, value] : qkv::state_of(second.model))
    if (value.values() != expected.at(path).values()) return 1;
  fmt::print("resumed exactly\n");
}
