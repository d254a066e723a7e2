// Trains a module of one's own as `qkv train` trains its models: checkpoints, evaluations, early
// stopping, and a second call that continues or returns what the first one found.
#include <fmt/format.h>
#include <qkv/layers/linear.h>
#include <qkv/train/loop/module_training.h>

struct Mlp : qkv::Module {
  qkv::Linear hidden{2, 16}, out{16, 2};
  qkv::Tensor operator()(const qkv::Tensor& x, qkv::Context& context) const {
    return out(context.dropped(qkv::relu(hidden(x)), 0.1));
  }
  void visit(qkv::ModuleVisitor& visit) override { visit("hidden", hidden)("out", out); }
};

struct Progress : qkv::Callback {
  void on_evaluation(const qkv::StepReport& report, double train_loss,
                     const std::optional<qkv::Evaluation>& valid) override {
    if (valid)
      fmt::print("step {}: loss {:.3f}, valid {:.3f}\n", report.step, train_loss, valid->loss);
  }
};

// Points of the unit square and whether they lie above the diagonal.
std::pair<qkv::Tensor, qkv::Indices> points(qkv::Split split,
                                            std::span<const qkv::Index> examples) {
  const qkv::Random random(static_cast<std::uint64_t>(split), qkv::Purpose::testing);
  std::vector<double> x;
  std::vector<std::int32_t> labels;
  for (const qkv::Index i : examples) {
    const auto first = static_cast<std::uint64_t>(2 * i);
    x.insert(x.end(), {random.uniform(first), random.uniform(first + 1)});
    labels.push_back(x.back() > x[x.size() - 2] ? 1 : 0);
  }
  const qkv::Index count = std::ssize(examples);
  return {qkv::Tensor::from(x, {count, 2}), qkv::Indices(labels, {count})};
}

int main(int, char** arguments) {
  Mlp model;
  qkv::initialise(model, 1);
  const auto loss = [&](qkv::Split split, std::span<const qkv::Index> examples,
                        qkv::Context& context) {
    const auto [x, labels] = points(split, examples);
    return qkv::BatchLoss{qkv::cross_entropy(model(x, context), labels), std::ssize(examples)};
  };
  Progress progress;
  const qkv::Outcome outcome = qkv::train(
      model, {.train = 800, .valid = 100, .test = 100, .loss = loss},
      {.optimizer = {.lr = 0.01}, .train = {.steps = 300, .eval_every = 100, .patience = 2}},
      arguments[1], progress);
  if (outcome.test) fmt::print("test loss {:.3f}\n", outcome.test->loss);
}
