#include <array>
#include <optional>

#include "core/ops.h"
#include "optim/clip.h"
#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tests/proof/proof.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

constexpr int steps = 10;
constexpr double lr = 0.1;

/// How a row departs from plain steps.
struct Variant {
  std::string label;
  OptimizerOptions optimizer;
  double clip = 0, clip_value = 0, ema = 0;
  Index parts = 1;  ///< micro-batches
};

/// A linear layer with an embedding on top, so that each group of parameters has a member.
struct Model final : Module {
  explicit Model(DType dtype)
      : weight(randn({3, 4}, dtype, 1)),
        bias(randn({3}, dtype, 2), Role::bias),
        embedding(randn({5, 3}, dtype, 3), Role::embedding) {}

  Tensor loss(const Tensor& x, const Indices& ids, const Tensor& targets) const {
    return mean_squared_error(linear(x, weight, bias) + qkv::embedding(embedding, ids), targets);
  }
  void visit(ModuleVisitor& visit) override {
    visit("weight", weight)("bias", bias)("embedding", embedding);
  }

  Parameter weight, bias, embedding;
};

/// Ten steps; writes the values before and after each.
void write_steps(Proof& proof, const std::string& path, const Variant& variant, DType dtype) {
  Model model(dtype);
  const auto named = parameters(model);
  const Tensor x = randn({6, 4}, dtype, 4), targets = randn({6, 3}, dtype, 5);
  proof.write(path + ".x", x);
  proof.write(path + ".targets", targets);
  const auto optimizer = make_optimizer(variant.optimizer);
  std::optional<MovingAverage> average;
  if (variant.ema > 0) average.emplace(variant.ema);
  const auto write = [&](int step) {
    for (const auto& [name, parameter] : named)
      proof.write(fmt::format("{}.steps.{}.{}", path, step, name),
                  average && step ? average->values().at(name) : parameter->value());
  };
  write(0);
  const Index rows = 6 / variant.parts;
  const std::array<std::int32_t, 6> ids = {0, 2, 4, 4, 1, 2};
  for (int step = 0; step < steps; ++step) {
    Gradients gradients;
    for (Index begin = 0; begin < 6; begin += rows) {
      const Indices part({ids.data() + begin, static_cast<std::size_t>(rows)}, {rows});
      gradients += gradients_of(model.loss(slice(x, 0, begin, begin + rows), part,
                                           slice(targets, 0, begin, begin + rows)));
    }
    gradients *= 1 / static_cast<double>(variant.parts);
    clip_value(gradients, variant.clip_value);
    clip_norm(gradients, variant.clip);
    optimizer->step(named, gradients, lr, step);
    if (average) average->update(named);
    write(step + 1);
  }
}

const std::vector<Variant> variants = {
    {"sgd: plain", {.kind = OptimizerKind::sgd}},
    {"sgd: weight decay", {.kind = OptimizerKind::sgd, .weight_decay = 0.1}},
    {"sgd: momentum", {.kind = OptimizerKind::sgd, .momentum = 0.9}},
    {"sgd: Nesterov, weight decay",
     {.kind = OptimizerKind::sgd, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1}},
    {"adam: plain", {.kind = OptimizerKind::adam}},
    {"adam: weight decay", {.kind = OptimizerKind::adam, .weight_decay = 0.1}},
    {"adamw: weight decay", {.kind = OptimizerKind::adamw, .weight_decay = 0.1}},
    {"adam: AMSGrad, weight decay",
     {.kind = OptimizerKind::adam, .amsgrad = true, .weight_decay = 0.1}},
    {"adamw: AMSGrad", {.kind = OptimizerKind::adamw, .amsgrad = true, .weight_decay = 0.1}},
    {"rmsprop: plain", {.kind = OptimizerKind::rmsprop, .beta2 = 0.9}},
    {"rmsprop: momentum, weight decay",
     {.kind = OptimizerKind::rmsprop, .momentum = 0.5, .beta2 = 0.9, .weight_decay = 0.1}},
    {"adagrad: plain", {.kind = OptimizerKind::adagrad}},
    {"adagrad: weight decay", {.kind = OptimizerKind::adagrad, .weight_decay = 0.1}},
    {"muon: plain", {.kind = OptimizerKind::muon}},
    {"muon: weight decay, beta1",
     {.kind = OptimizerKind::muon, .beta1 = 0.95, .weight_decay = 0.1}},
    {"clip_norm: sgd", {.kind = OptimizerKind::sgd}, .5},
    {"clip_value: sgd", {.kind = OptimizerKind::sgd}, 0, .1},
    {"moving average: adam", {.kind = OptimizerKind::adam}, 0, 0, .8},
    {"accumulation: adam", {.kind = OptimizerKind::adam}, 0, 0, 0, 3},
};

struct Plan {
  std::string label;
  ScheduleOptions schedule;
};

const std::vector<Plan> plans = {
    {"constant: no warm-up", {.kind = ScheduleKind::constant}},
    {"constant: warm-up", {.kind = ScheduleKind::constant, .warmup = 5}},
    {"linear: to a floor", {.kind = ScheduleKind::linear, .floor = 0.1}},
    {"linear: warm-up", {.kind = ScheduleKind::linear, .warmup = 5}},
    {"cosine: to a floor", {.kind = ScheduleKind::cosine, .floor = 0.1}},
    {"cosine: warm-up", {.kind = ScheduleKind::cosine, .warmup = 5, .floor = 0.1}},
    {"inverse_sqrt: warm-up", {.kind = ScheduleKind::inverse_sqrt, .warmup = 5}},
    {"one_cycle: warm-up", {.kind = ScheduleKind::one_cycle, .warmup = 5, .floor = 0.01}},
};

}  // namespace

void prove_optimizers(Proof& proof) {
  for (const Variant& variant : variants) {
    const std::string path = proof.add("optimizers", variant.label);
    for (const DType dtype : {DType::float32, DType::float64})
      write_steps(proof, path + "." + std::string(to_string(dtype)), variant, dtype);
  }
  constexpr int schedule_steps = 20;
  for (const Plan& plan : plans) {
    std::vector<double> rates;
    for (int step = 0; step < schedule_steps; ++step)
      rates.push_back(learning_rate(plan.schedule, lr, step, schedule_steps));
    proof.write(proof.add("schedules", plan.label) + ".rates",
                Tensor::from(rates, {schedule_steps}, DType::float64));
  }
}

}  // namespace qkv::tests
