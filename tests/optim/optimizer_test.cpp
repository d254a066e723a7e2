#include "optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/ops.h"
#include "core/parallel.h"
#include "optim/clip.h"
#include "optim/moving_average.h"
#include "optim/schedule.h"
#include "tests/fuzz/families.h"
#include "tests/ops/check_rows.h"
#include "tests/support/errors.h"
#include "tests/support/randn.h"

namespace qkv::tests {
namespace {

template <class... Numbers>
concept Steps = requires(Optimizer& optimizer, const std::vector<NamedParameter>& parameters,
                         const Gradients& gradients, Numbers... numbers) {
  optimizer.step(parameters, gradients, numbers...);
};
// The learning rate comes first, and neither number can be left out.
static_assert(Steps<double, std::int64_t> && Steps<float, int> && Steps<int, int>);
static_assert(!Steps<int, double> && !Steps<double> && !Steps<>);

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

TEST_CASE("every optimizer takes the steps of its formula") {
  fuzz::check_rows({{"optimizer", fuzz::draw_optimizer}}, 400);
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

TEST_CASE("what took the state keeps it while the optimizer continues") {
  Parameter x(Tensor::scalar(0));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  const auto optimizer = make_optimizer({});
  optimizer->step(parameters, gradients_of(power(x - 3, 2)), 0.1, 0);
  const auto taken = optimizer->state();
  const auto before = taken.at("first_moment.x").values();
  optimizer->step(parameters, gradients_of(power(x - 3, 2)), 0.1, 1);
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
  const auto trained = [](OptimizerKind kind, Role role, const Shape& shape, double decay) {
    Parameter x(Tensor::full(shape, 2, DType::float64), role);
    const std::vector<NamedParameter> parameters = {{"x", &x}};
    const auto optimizer = make_optimizer({.kind = kind, .epsilon = 1, .weight_decay = decay});
    for (int step = 0; step < 2; ++step)
      optimizer->step(parameters, gradients_of(sum(x * x)), 0.1, step);
    return x.value().values();
  };
  for (const OptimizerRow& row : optimizer_kinds()) {
    CAPTURE(row.name);
    const auto decayed = [&](Role role, const Shape& shape) {
      return trained(row.value, role, shape, 0.5) != trained(row.value, role, shape, 0);
    };
    for (const Role role : {Role::weight, Role::query, Role::head}) CHECK(decayed(role, {2, 2}));
    for (const Role role : {Role::embedding, Role::position, Role::bias, Role::norm})
      CHECK_FALSE(decayed(role, {2, 2}));
    CHECK_FALSE(decayed(Role::weight, {2}));
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

TEST_CASE("a negative step is an error") {
  Parameter x(Tensor::from({1, 2}, {2}));
  const std::vector<NamedParameter> parameters = {{"x", &x}};
  CHECK(error_of<ValueError>([&] {
          make_optimizer({})->step(parameters, gradients_of(sum(x * 2)), 0.1, -1);
        }) == "[optimizer] updates count from 0, got step -1");
}

}  // namespace qkv::tests
