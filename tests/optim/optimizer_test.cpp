#include "optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/ops.h"
#include "core/parallel.h"
#include "optim/clip.h"
#include "optim/moving_average.h"
#include "optim/schedule.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

/// Minimises (x - 3)^2 from 0 and returns x after each step.
std::vector<double> descend(const OptimizerOptions& options, int steps) {
  Parameter x(Tensor::scalar(0, DType::float64));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  const auto optimizer = make_optimizer(options);
  std::vector<double> path;
  for (int step = 0; step < steps; ++step) {
    const Tensor difference = x - 3;
    optimizer->step(parameters, gradients_of(difference * difference), options.lr, step);
    path.push_back(x.value().item());
  }
  return path;
}

/// I - 2 v v^T / v^T v for v = (first, first + 1, ...): an orthogonal matrix [n, n].
Tensor reflection(Index n, double first) {
  Tensor identity = Tensor::zeros({n, n}, DType::float64),
         v = Tensor::zeros({n, 1}, DType::float64);
  for (Index i = 0; i < n; ++i) {
    identity.mutable_data<double>()[static_cast<std::size_t>(i * (n + 1))] = 1;
    v.mutable_data<double>()[static_cast<std::size_t>(i)] = first + static_cast<double>(i);
  }
  return identity - 2 / sum(v * v) * matmul(v, v, Transpose::second);
}

/// U S V^T [rows, columns] with the singular values `s`.
Tensor with_singular_values(const std::vector<double>& s, Index rows, Index columns) {
  Tensor diagonal = Tensor::zeros({rows, columns}, DType::float64);
  for (std::size_t i = 0; i < s.size(); ++i)
    diagonal.mutable_data<double>()[i * static_cast<std::size_t>(columns + 1)] = s[i];
  return matmul(matmul(reflection(rows, 1), diagonal), reflection(columns, -1.5));
}

/// What Muon's five iterations make of a singular value.
double iterated(double s) {
  for (int i = 0; i < 5; ++i) s = s * (3.4445 + s * s * (-4.775 + s * s * 2.0315));
  return s;
}

/// A restored optimizer makes the updates of the one that was not interrupted.
void check_restored(const OptimizerOptions& options) {
  Parameter x(Tensor::from({0, 1, 2, -1, 0.5, 4}, {2, 3}));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  const auto step = [&](Optimizer& optimizer, int i) {
    optimizer.step(parameters, gradients_of(sum(power(x - 3, 2))), 0.1, i);
  };
  const auto first = make_optimizer(options);
  step(*first, 0);
  const Tensor middle = Tensor::from(x.value().values(), x.shape());
  std::map<std::string, Tensor> saved;
  for (const auto& [path, value] : first->state())
    saved[path] = Tensor::from(value.values(), value.shape());
  step(*first, 1);
  const auto uninterrupted = x.value().values();
  const auto second = make_optimizer(options);
  for (Optimizer* const restored : {second.get(), first.get()}) {
    x.assign(middle);
    std::map<std::string, Tensor> state;
    for (const auto& [path, value] : saved)
      state[path] = Tensor::from(value.values(), value.shape());
    restored->load_state(parameters, std::move(state));
    step(*restored, 1);
    CHECK(x.value().values() == uninterrupted);
  }
}

}  // namespace

TEST_CASE("SGD takes off the learning rate times the gradient") {
  const auto path = descend({.kind = OptimizerKind::sgd, .lr = 0.1}, 2);
  CHECK(path[0] == doctest::Approx(0.6));
  CHECK(path[1] == doctest::Approx(0.6 + 0.1 * 2 * 2.4));
}

TEST_CASE("without a learning rate a step takes the options'") {
  Parameter x(Tensor::full({1, 1}, 2, DType::float64));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  make_optimizer({.kind = OptimizerKind::sgd})->step(parameters, gradients_of(x * 3), 0.5, 0);
  CHECK(x.value().item() == doctest::Approx(2 - 0.5 * 3));
}

TEST_CASE("SGD with momentum adds a fraction of the last update") {
  const auto path = descend({.kind = OptimizerKind::sgd, .lr = 0.1, .momentum = 0.9}, 2);
  CHECK(path[0] == doctest::Approx(0.6));
  CHECK(path[1] == doctest::Approx(0.6 + 0.1 * (0.9 * 6 + 4.8)));
}

TEST_CASE("Adam's first step is the learning rate, and the second follows the formula") {
  const double lr = 0.1;
  const auto path = descend({.kind = OptimizerKind::adam, .lr = lr}, 2);
  CHECK(path[0] == doctest::Approx(lr).epsilon(1e-8));
  const double g1 = -6, g2 = 2 * (path[0] - 3);
  const double m = (0.9 * 0.1 * g1 + 0.1 * g2) / (1 - 0.81);
  const double v = (0.999 * 0.001 * g1 * g1 + 0.001 * g2 * g2) / (1 - 0.999 * 0.999);
  CHECK(path[1] == doctest::Approx(path[0] - lr * m / (std::sqrt(v) + 1e-8)).epsilon(1e-12));
}

TEST_CASE("AMSGrad divides by the largest mean of squared gradients so far, and keeps it") {
  Parameter x(Tensor::scalar(0, DType::float64));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  const OptimizerOptions options{.beta1 = 0, .beta2 = 0.5, .amsgrad = true, .epsilon = 0};
  const auto optimizer = make_optimizer(options);
  optimizer->step(parameters, gradients_of(x * 4), 0.1, 0);
  CHECK(x.value().item() == doctest::Approx(-0.1));
  optimizer->step(parameters, gradients_of(x * 1), 0.1, 1);
  // The means of squares are 8 and 4.5; the larger is corrected by 1 - 0.5^2.
  CHECK(x.value().item() == doctest::Approx(-0.1 - 0.1 / std::sqrt(8 / 0.75)));
  CHECK(optimizer->state().at("max_second_moment.x").item() == doctest::Approx(8));
  const auto plain = make_optimizer({});
  plain->step(parameters, gradients_of(x * 4), 0.1, 0);
  CHECK_FALSE(plain->state().contains("max_second_moment.x"));
}

TEST_CASE("weight decay is part of the gradient in Adam and apart from it in AdamW") {
  const auto first = [](OptimizerKind kind) {
    Parameter x(Tensor::full({1, 1}, 2, DType::float64));
    const std::vector<NamedParameter> parameters = {{"x", &x}};
    make_optimizer({.kind = kind, .weight_decay = 0.5})
        ->step(parameters, gradients_of(x * 1), 0.1, 0);
    return x.value().item();
  };
  CHECK(first(OptimizerKind::adam) == doctest::Approx(1.9));
  CHECK(first(OptimizerKind::adamw) == doctest::Approx(2 * (1 - 0.1 * 0.5) - 0.1));
}

TEST_CASE("every optimizer finds the minimum of a parabola") {
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
    CAPTURE(static_cast<int>(kind));
    CHECK(descend({.kind = kind, .lr = 0.1}, 300).back() == doctest::Approx(3).epsilon(1e-3));
  }
  CHECK(descend({.kind = OptimizerKind::adagrad, .lr = 1}, 300).back() ==
        doctest::Approx(3).epsilon(1e-3));
  CHECK(descend({.kind = OptimizerKind::rmsprop, .lr = 0.01}, 500).back() ==
        doctest::Approx(3).epsilon(1e-2));
}

TEST_CASE("what took the state keeps it while the optimizer continues") {
  Parameter x(Tensor::scalar(0));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  const auto optimizer = make_optimizer({});
  optimizer->step(parameters, gradients_of(power(x - 3, 2)), 0);
  const auto taken = optimizer->state();
  const auto before = taken.at("first_moment.x").values();
  optimizer->step(parameters, gradients_of(power(x - 3, 2)), 1);
  CHECK(taken.at("first_moment.x").values() == before);
  CHECK(optimizer->state().at("first_moment.x").values() != before);
}

TEST_CASE("an optimizer restored from its state takes the same updates as an uninterrupted one") {
  for (const OptimizerRow& row : optimizer_kinds()) {
    CAPTURE(row.name);
    check_restored({.kind = row.value, .lr = 0.1});
  }
}
TEST_CASE("state of an unknown parameter or another shape is refused") {
  Parameter x(Tensor::zeros({2}));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  const auto optimizer = make_optimizer({});
  CHECK_THROWS_AS(optimizer->load_state(parameters, {{"first_moment.y", Tensor::zeros({2})}}),
                  ValueError);
  CHECK_THROWS_AS(optimizer->load_state(parameters, {{"first_moment.x", Tensor::zeros({3})}}),
                  ValueError);
  Parameter weight(Tensor::zeros({2, 2}));
  CHECK_THROWS_AS(make_optimizer({.kind = OptimizerKind::muon})
                      ->load_state(std::vector<NamedParameter>{{"w", &weight}},
                                   {{"second_moment.w", Tensor::zeros({2, 2})}}),
                  ValueError);
}

TEST_CASE("a listed parameter without gradient is named where gradients are required") {
  Parameter x(Tensor::scalar(1)), y(Tensor::scalar(1));
  const std::vector<NamedParameter> parameters = {{"x", &x}, {"unused.y", &y}};
  CHECK_NOTHROW(make_optimizer({})->step(parameters, gradients_of(x * 2), 0.1, 0));
  CHECK(y.value().item() == 1);
  const OptimizerOptions strict{.require_gradients = true};
  CHECK_THROWS_WITH_AS(make_optimizer(strict)->step(parameters, gradients_of(x * 2), 0.1, 0),
                       "[optimizer] no gradient for: unused.y; freeze what is not to be trained",
                       ValueError);
  y.freeze();
  CHECK_NOTHROW(make_optimizer(strict)->step(parameters, gradients_of(x * 2), 0.1, 0));
}

TEST_CASE("a gradient whose parameter is not listed is an error") {
  Parameter x(Tensor::scalar(1)), hidden(Tensor::scalar(1));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  CHECK_THROWS_AS(make_optimizer({})->step(parameters, gradients_of(x * hidden), 0.1, 0),
                  ValueError);
}

TEST_CASE("clipping scales all gradients to the joint norm and leaves small ones alone") {
  const Parameter x(Tensor::scalar(3)), y(Tensor::scalar(4));
  Gradients gradients = gradients_of(x * x / 2 + y * y / 2);
  CHECK(clip_norm(gradients, 10) == doctest::Approx(5));
  CHECK(gradients.of(x).item() == doctest::Approx(3));
  CHECK(clip_norm(gradients, 1) == doctest::Approx(5));
  CHECK(gradients.of(x).item() == doctest::Approx(0.6));
  CHECK(gradients.norm() == doctest::Approx(1));
}

TEST_CASE("the learning rate warms up linearly and then follows its schedule") {
  const auto at = [](ScheduleKind kind, std::int64_t step) {
    return learning_rate({.kind = kind, .warmup = 10, .floor = 0.1}, 1, step, 110);
  };
  CHECK(at(ScheduleKind::constant, 0) == doctest::Approx(0.1));
  CHECK(at(ScheduleKind::constant, 9) == doctest::Approx(1));
  CHECK(at(ScheduleKind::constant, 10) == 1);
  CHECK(at(ScheduleKind::constant, 100) == 1);
  CHECK(at(ScheduleKind::linear, 10) == 1);
  CHECK(at(ScheduleKind::cosine, 10) == 1);
  CHECK(at(ScheduleKind::linear, 60) == doctest::Approx(0.55));
  CHECK(at(ScheduleKind::cosine, 60) == doctest::Approx(0.55));
  CHECK(at(ScheduleKind::cosine, 35) == doctest::Approx(0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2));
  CHECK(at(ScheduleKind::linear, 110) == doctest::Approx(0.1));
  CHECK(at(ScheduleKind::cosine, 1000) == doctest::Approx(0.1));
}

TEST_CASE(
    "the inverse square root starts at the top and falls fourfold while steps grow sixteenfold") {
  const auto at = [](std::int64_t step) {
    return learning_rate({.kind = ScheduleKind::inverse_sqrt, .warmup = 10}, 2, step, 1000);
  };
  CHECK(at(4) == doctest::Approx(1));
  CHECK(at(9) == doctest::Approx(2));
  CHECK(at(10) == doctest::Approx(2 * std::sqrt(10.0 / 11)));
  CHECK(at(159) == doctest::Approx(0.5));
  CHECK(learning_rate({.kind = ScheduleKind::inverse_sqrt}, 1, 0, 10) == 1);
}

TEST_CASE(
    "one cycle rises from a 25th to the top at the end of the warm-up and ends at the floor") {
  const auto at = [](std::int64_t step) {
    return learning_rate({.kind = ScheduleKind::one_cycle, .warmup = 5, .floor = 0.01}, 1, step,
                         13);
  };
  CHECK(at(0) == doctest::Approx(0.04));
  CHECK(at(2) == doctest::Approx(0.52));
  CHECK(at(4) == doctest::Approx(1));
  CHECK(at(8) == doctest::Approx(0.505));
  CHECK(at(12) == doctest::Approx(0.01));
}

TEST_CASE("weight decay spares vectors, embeddings and positions") {
  const auto decays_as = [](Role role, const Shape& shape = {2, 2}) {
    return decays(Parameter(Tensor::zeros(shape), role));
  };
  for (const Role role : {Role::weight, Role::query, Role::key, Role::value, Role::attention_output,
                          Role::feed_forward_input, Role::feed_forward_output, Role::head})
    CHECK(decays_as(role));
  for (const Role role : {Role::embedding, Role::position, Role::bias, Role::norm})
    CHECK_FALSE(decays_as(role));
  CHECK_FALSE(decays_as(Role::weight, {2}));
}

TEST_CASE("every optimizer decays the matrices of layers, and nothing else") {
  // An epsilon of 1 keeps the size of a gradient in the first update of those that divide by it.
  const double lr = 0.1, decay = 0.5, start = 2, kept = 0.001;
  const auto with = [&](OptimizerKind kind) {
    return OptimizerOptions{.kind = kind, .epsilon = 1, .weight_decay = decay};
  };
  OptimizerOptions momentum = with(OptimizerKind::sgd), nesterov = momentum,
                   rms_momentum = with(OptimizerKind::rmsprop);
  momentum.momentum = nesterov.momentum = rms_momentum.momentum = 0.9;
  nesterov.nesterov = true;
  const auto plain = [](double g) { return g; };
  const auto scaled = [](double g) { return g / (g + 1); };
  const auto rms = [=](double g) { return g / (std::sqrt(kept) * g + 1); };
  // The first update, in learning rates, for a gradient g.
  const std::vector<std::pair<OptimizerOptions, std::function<double(double)>>> rows = {
      {with(OptimizerKind::sgd), plain},
      {momentum, plain},
      {nesterov, [](double g) { return 1.9 * g; }},
      {with(OptimizerKind::adam), scaled},
      {with(OptimizerKind::adagrad), scaled},
      {with(OptimizerKind::rmsprop), rms},
      {rms_momentum, rms}};
  const auto after_a_step = [&](const OptimizerOptions& options) {
    const Tensor matrix = Tensor::full({2, 2}, start, DType::float64);
    Parameter weight(matrix), table(matrix, Role::embedding), positions(matrix, Role::position),
        bias(Tensor::full({2}, start, DType::float64), Role::bias);
    const std::vector<NamedParameter> parameters = {{"layer.weight", &weight},
                                                    {"layer.bias", &bias},
                                                    {"embedding.weight", &table},
                                                    {"positions.weight", &positions}};
    const Tensor loss = sum(weight) + sum(bias) + sum(table) + sum(positions);
    make_optimizer(options)->step(parameters, gradients_of(loss), lr, 0);
    for (const auto& [path, parameter] : parameters)
      for (const double v : parameter->value().values()) CHECK(v == parameter->value().values()[0]);
    CHECK(table.value().values() == positions.value().values());
    CHECK(table.value().values()[0] == bias.value().values()[0]);
    return std::pair(weight.value().values()[0], bias.value().values()[0]);
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto& [options, update] = rows[i];
    const auto [decayed, spared] = after_a_step(options);
    CHECK(decayed == doctest::Approx(start - lr * update(1 + decay * start)).epsilon(1e-12));
    CHECK(spared == doctest::Approx(start - lr * update(1)).epsilon(1e-12));
  }
  const auto [decayed, spared] = after_a_step(with(OptimizerKind::adamw));
  CHECK(decayed == doctest::Approx(start * (1 - lr * decay) - lr * scaled(1)).epsilon(1e-12));
  CHECK(spared == doctest::Approx(start - lr * scaled(1)).epsilon(1e-12));
  // The look-ahead is 0.19 everywhere: its norm, 0.38, is divided by the epsilon.
  const auto [muon, vectors] = after_a_step(with(OptimizerKind::muon));
  const double update = 0.2 * std::sqrt(2) * iterated(0.38) / 2;
  CHECK(muon == doctest::Approx(start * (1 - lr * decay) - lr * update).epsilon(1e-12));
  CHECK(vectors == spared);
}

TEST_CASE("Muon iterates on the singular values of the look-ahead and keeps its singular vectors") {
  const double lr = 0.1, beta = 0.75;
  for (const auto& [rows, columns] : {std::pair<Index, Index>{5, 5}, {3, 5}, {5, 2}, {1, 5}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const auto count = static_cast<std::size_t>(std::min(rows, columns));
    std::vector<double> first = {3, 1, 0.5, 0.25, 0.01}, second = {-1, 2, 0.125, 4, 0.02};
    first.resize(count);
    second.resize(count);
    Parameter weight(Tensor::zeros({rows, columns}, DType::float64));
    const std::vector<NamedParameter> parameters = {{"weight", &weight}};
    const auto optimizer = make_optimizer({.kind = OptimizerKind::muon, .beta1 = beta});
    std::vector<double> moment(count), expected(count);
    int step = 0;
    for (const std::vector<double>& s : {first, second}) {
      const Tensor gradient = with_singular_values(s, rows, columns);
      optimizer->step(parameters, gradients_of(sum(weight * gradient)), lr, step++);
      double squares = 0;
      std::vector<double> ahead(count);
      for (std::size_t i = 0; i < count; ++i) {
        moment[i] = beta * moment[i] + (1 - beta) * s[i];
        ahead[i] = beta * moment[i] + (1 - beta) * s[i];
        squares += ahead[i] * ahead[i];
      }
      const double size = 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
      for (std::size_t i = 0; i < count; ++i)
        expected[i] -= lr * size * iterated(ahead[i] / std::sqrt(squares));
    }
    const auto values = weight.value().values(),
               oracle = with_singular_values(expected, rows, columns).values();
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == doctest::Approx(oracle[i]).epsilon(1e-9));
  }
}

TEST_CASE("Muon leaves all but hidden matrices to AdamW, and keeps one moment of these") {
  const auto trained = [](OptimizerKind kind, Role role, const Shape& shape) {
    Parameter parameter(Tensor::full(shape, 1), role);
    const std::vector<NamedParameter> parameters = {{"x", &parameter}};
    const auto optimizer = make_optimizer({.kind = kind, .weight_decay = 0.5});
    for (int step = 0; step < 3; ++step)
      optimizer->step(parameters, gradients_of(sum(parameter * parameter)), 0.1, step);
    return std::pair(parameter.value().values(), optimizer->state().contains("second_moment.x"));
  };
  for (const Role role : {Role::embedding, Role::position, Role::head})
    CHECK(trained(OptimizerKind::muon, role, {2, 3}) ==
          trained(OptimizerKind::adamw, role, {2, 3}));
  for (const Role role : {Role::bias, Role::norm, Role::weight})
    CHECK(trained(OptimizerKind::muon, role, {3}) == trained(OptimizerKind::adamw, role, {3}));
  for (const Role role : {Role::weight, Role::query, Role::attention_output,
                          Role::feed_forward_input, Role::feed_forward_output})
    CHECK_FALSE(trained(OptimizerKind::muon, role, {2, 3}).second);
  // A kernel [out, in, width] is a matrix [out, in width].
  CHECK(trained(OptimizerKind::muon, Role::weight, {2, 3, 2}).first ==
        trained(OptimizerKind::muon, Role::weight, {2, 6}).first);
}

TEST_CASE(
    "Muon's update does not depend on the number of threads, nor on a matrix without elements") {
  const auto trained = [](int count) {
    const int before = threads();
    set_threads(count);
    std::vector<Parameter> weights;
    for (std::uint64_t i = 0; i < 7; ++i) weights.emplace_back(randn({40, 70}, DType::float32, i));
    weights.emplace_back(Tensor::zeros({0, 3}));
    std::vector<NamedParameter> parameters;
    Tensor loss = Tensor::scalar(0);
    for (Parameter& weight : weights) {
      parameters.push_back({std::to_string(parameters.size()), &weight});
      loss = loss + sum(power(weight, 3));
    }
    make_optimizer({.kind = OptimizerKind::muon})->step(parameters, gradients_of(loss), 0.1, 0);
    set_threads(before);
    std::vector<double> all;
    for (const Parameter& weight : weights)
      for (const double value : weight.value().values()) all.push_back(value);
    return all;
  };
  CHECK(trained(1) == trained(3));
}

TEST_CASE("Nesterov takes the gradient's step ahead of the velocity's") {
  const auto path =
      descend({.kind = OptimizerKind::sgd, .lr = 0.1, .momentum = 0.9, .nesterov = true}, 1);
  CHECK(path[0] == doctest::Approx(0.1 * (6 + 0.9 * 6)));
}

TEST_CASE("clipping by value clamps each element to the limit") {
  const Parameter x(Tensor::from({3, -4, 0.5}, {3}));
  Gradients gradients = gradients_of(sum(x * x / 2));
  clip_value(gradients, 0);
  CHECK(gradients.of(x).values() == std::vector<double>{3, -4, 0.5});
  clip_value(gradients, 2);
  CHECK(gradients.of(x).values() == std::vector<double>{2, -2, 0.5});
}

TEST_CASE("a moving average starts at the first values and is in use only while asked for") {
  Parameter x(Tensor::full({2}, 1));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  MovingAverage average(0.75);
  average.update(parameters);
  x.assign(Tensor::full({2}, 5));
  average.update(parameters);
  CHECK(average.values().at("x").values() == std::vector<double>{2, 2});
  {
    const UseAverage averaged(parameters, average);
    CHECK(x.value().values() == std::vector<double>{2, 2});
  }
  CHECK(x.value().values() == std::vector<double>{5, 5});
  CHECK_THROWS_AS(MovingAverage(1), ValueError);
}

}  // namespace qkv::tests
