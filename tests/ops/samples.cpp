#include "tests/ops/samples.h"

#include "core/parameter.h"
#include "tests/ops/formulas.h"

namespace qkv::fuzz {

const std::map<std::string, OpDraw>& op_draws() {
  static const std::map<std::string, OpDraw> draws = [] {
    std::map<std::string, OpDraw> all;
    for (const auto* family :
         {&elementwise_draws(), &shape_draws(), &reduction_draws(), &layer_draws(),
          &attention_draws(), &recurrent_draws(), &loss_draws()})
      all.insert(family->begin(), family->end());
    return all;
  }();
  return draws;
}

namespace {

constexpr int samples_of_an_op = 8;
constexpr std::uint64_t most_draws = 400;  ///< of an op, of which few may be ordinary

/// Whether the oracle knows all of them, and a small step along gradients crosses no singularity.
bool tame(const std::vector<Number>& numbers) {
  constexpr Real largest_value = 100;
  return std::ranges::all_of(
      numbers, [](const Number& x) { return !x.unsure && std::fabs(x.value) <= largest_value; });
}

/// Whether the result and the gradients are tame, and nothing on the way is extreme.
bool ordinary(const Case& call) {
  if (call.steps.empty()) return false;
  const Expected expected = expected_of(call, DType::float64);
  return expected.ordinary && tame(expected.output) &&
         std::ranges::all_of(expected.gradients, tame);
}

bool constant_result(const Case& call) {
  const In inputs = inputs_of(call, DType::float64);
  const std::vector<Parameter> parameters(inputs.begin(), inputs.end());
  return !output_of(call, {parameters.begin(), parameters.end()}).node();
}

/// Adds the sum of the first input to the result, a constant.
void add_first_input(Case& call) {
  const std::size_t result = call.inputs.size();
  call.steps.back().detaches = true;
  call.steps.push_back(
      {"sum",
       {0},
       {},
       "sum($0, {}, false)",
       [](const In& x) { return sum(x[0]); },
       [](const Arrays& x) -> Array { return sum(Scalars(x[0]), dtype_of(x[0])); }});
  call.steps.push_back({"add",
                        {result, result + 1},
                        {},
                        "add($0, $1)",
                        [](const In& x) { return add(x[0], x[1]); },
                        [](const Arrays& x) -> Array { return x[0] + x[1]; }});
}

std::vector<OpSample> samples_of(const std::string& op, const OpDraw& draw) {
  constexpr std::uint32_t reuse = 20;
  std::vector<OpSample> samples;
  for (std::uint64_t i = 0; i < most_draws && std::ssize(samples) < samples_of_an_op; ++i) {
    Draw choices(3, i);
    Builder builder(choices, op, reuse, Values::smooth);
    draw(builder);
    Case call = builder.finish();
    if (!ordinary(call)) continue;
    if (constant_result(call)) add_first_input(call);
    samples.push_back({op, static_cast<int>(samples.size()), std::move(call)});
  }
  return samples;
}

}  // namespace

std::string OpSample::code() const {
  std::string all;
  for (const Step& step : call.steps) all += (all.empty() ? "" : "; ") + call_of(call, step);
  return all;
}

bool OpSample::detaches() const {
  return std::ranges::any_of(call.steps, &Step::detaches);
}

std::vector<OpSample> samples_of(const std::map<std::string, OpDraw>& rows) {
  std::vector<OpSample> all;
  for (const auto& [op, draw] : rows)
    std::ranges::move(samples_of(op, draw), std::back_inserter(all));
  return all;
}

const std::vector<OpSample>& op_samples() {
  static const std::vector<OpSample> samples = samples_of(op_draws());
  return samples;
}

}  // namespace qkv::fuzz
