#include "core/parameter.h"

#include <doctest/doctest.h>

#include "core/ops.h"
#include "tests/support/errors.h"

namespace qkv::tests::parameter_test {
namespace {

Parameter number(double value) {
  return Parameter(Tensor::scalar(value, DType::float64));
}

/// Two parameters, one of them in a sub-module.
struct Model final : Module {
  struct Layer final : Module {
    Parameter weight{Tensor::from({1, 2}, {2})};
    void visit(ModuleVisitor& visit) override { visit("weight", weight); }
  } layer;
  Parameter bias{Tensor::scalar(3)};
  void visit(ModuleVisitor& visit) override { visit("layer", layer)("bias", bias); }
};

}  // namespace

TEST_CASE("changing a parameter leaves tensors computed from it alone") {
  Parameter a = number(2);
  const Tensor before = a;
  a.mutable_data<double>()[0] = 7;
  CHECK(before.item() == 2);
  CHECK(a.value().item() == 7);
}

TEST_CASE("copies of a parameter are independent") {
  Parameter a = number(2);
  const Parameter b = a;
  a.mutable_data<double>()[0] = 5;
  CHECK(b.value().item() == 2);
  const Gradients gradients = gradients_of(a * 3);
  CHECK(gradients.has(a));
  CHECK_FALSE(gradients.has(b));
}

TEST_CASE("a model that loads the state of another has its values") {
  const Model trained = [] {
    Model model;
    model.layer.weight.assign(Tensor::from({5, 6}, {2}));
    return model;
  }();
  Model fresh;
  load_state(fresh, state_of(trained));
  CHECK(parameter_count(trained) == 3);
  CHECK(fresh.layer.weight.value().values() == std::vector<double>{5, 6});
  CHECK(fresh.bias.value().item() == 3);
}

TEST_CASE("listed parameters are those of the module wherever it is moved, and outlive it") {
  std::vector<NamedParameter> listed;
  {
    Model model;
    listed = parameters(model);
    std::vector<Model> moved;
    moved.push_back(std::move(model));
    listed[0].parameter->assign(Tensor::from({8, 9}, {2}));
    CHECK(moved[0].layer.weight.value().values() == std::vector<double>{8, 9});
    CHECK(gradients_of(sum(moved[0].layer.weight)).has(*listed[0].parameter));
  }
  CHECK(listed[0].parameter->value().values() == std::vector<double>{8, 9});
}

TEST_CASE("a parameter that was moved from is an error that says so") {
  Model model;
  const Model moved = std::move(model);
  const std::string expected =
      "[parameter] was moved from; call the module that its module was moved to, or copy modules "
      "instead of moving them";
  CHECK(error_of<ValueError>([&] { model.bias.value(); }) == expected);
  CHECK(error_of<ValueError>([&] { parameters(model); }) == expected);
}

TEST_CASE("a parameter without a gradient is named by its path once it was listed") {
  Model model;
  const Gradients gradients = gradients_of(model.bias * 2);
  const auto asked = [&] { gradients.of(model.layer.weight); };
  CHECK(
      error_of<ValueError>(asked) ==
      "[gradients] a parameter of shape (2,) received no gradient: the loss does not depend on it, "
      "or an op's backward adds none for it");
  parameters(model);
  CHECK(error_of<ValueError>(asked) ==
        "[gradients] layer.weight of shape (2,) received no gradient: the loss does not depend on "
        "it, or an op's backward adds none for it");
}

TEST_CASE("loading a state keeps each parameter's dtype") {
  Model model;
  auto state = state_of(model);
  state["bias"] = Tensor::scalar(0.5, DType::float64);
  load_state(model, state);
  CHECK(model.bias.value().dtype() == DType::float32);
  CHECK(model.bias.value().item() == 0.5);
}

TEST_CASE("the state of another model is refused with every difference, and changes nothing") {
  Model model;
  const std::string error = error_of<ValueError>([&] {
    load_state(model, {{"layer.weight", Tensor::zeros({3})}, {"scale", Tensor::scalar(1)}});
  });
  CHECK(error ==
        "[load_state] layer.weight has shape (3,) instead of (2,); bias is missing; "
        "scale is not a parameter of it");
  CHECK(model.layer.weight.value().values() == std::vector<double>{1, 2});
}

}  // namespace qkv::tests::parameter_test
