#include "tests/ops/check.h"

#include "core/autograd.h"
#include "core/parameter.h"

namespace qkv::fuzz {
namespace {

std::vector<double> weights_of(const Case& sample, Index size) {
  std::vector<double> weights;
  for (Index i = 0; i < size; ++i) weights.push_back(weight_at(sample, i));
  return weights;
}

/// The results of all steps, after the inputs.
template <class T, class F>
T last_of(const Case& sample, std::vector<T> values, F call) {
  for (const Step& step : sample.steps) {
    std::vector<T> operands;
    for (const std::size_t operand : step.operands) operands.push_back(values[operand]);
    values.push_back(call(step, operands));
  }
  return values.back();
}

/// The value, rounded to the type.
Real held(double value, DType dtype) {
  return dtype == DType::float32 ? static_cast<Real>(static_cast<float>(value)) : Real{value};
}

bool agrees(double got, const Number& expected, bool signs) {
  const Real value = expected.over()
                         ? std::copysign(std::numeric_limits<Real>::infinity(), expected.value)
                         : expected.value;
  if (expected.unsure) return true;
  if (std::isnan(value) || std::isnan(got)) return std::isnan(value) == std::isnan(got);
  if (std::isinf(value) || std::isinf(got)) return value == static_cast<Real>(got);
  if (signs && value == 0 && expected.exact() && got == 0)
    return std::signbit(value) == std::signbit(got);
  return std::fabs(static_cast<Real>(got) - value) <= expected.bound();
}

Failure difference(DType dtype, const std::string& what, Index element, double got,
                   const Number& expected) {
  return {dtype,
          what,
          element,
          got,
          static_cast<double>(expected.value),
          static_cast<double>(expected.bound()),
          {}};
}

/// A failure other than a wrong value.
Failure fault(DType dtype, const std::string& what, const std::string& message) {
  return {dtype, what, 0, 0, 0, 0, message};
}

std::optional<Failure> compared(const std::string& what, const Tensor& got,
                                std::span<const Number> expected, bool signs) {
  const auto values = got.values();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!agrees(values[i], expected[i], signs))
      return difference(got.dtype(), what, static_cast<Index>(i), values[i], expected[i]);
  return {};
}

std::optional<Failure> check(const Case& sample, DType dtype) {
  Outcome outcome;
  try {
    outcome = outcome_of(sample, dtype);
  } catch (const std::exception& error) {
    return fault(dtype, "call", fmt::format("it throws {}", error.what()));
  }
  const Expected expected = expected_of(sample, dtype);
  if (outcome.output.shape() != expected.shape)
    return fault(dtype, "output",
                 fmt::format("its shape is {}, not {}", outcome.output.shape(), expected.shape));
  if (const auto failure = compared("output", outcome.output, expected.output,
                                    sample.steps.size() == 1 && sample.last().signs))
    return failure;
  for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
    if (outcome.gradients[i].shape() != sample.inputs[i].shape)
      return fault(dtype, fmt::format("gradient of x{}", i),
                   fmt::format("its shape is {}", outcome.gradients[i].shape()));
    if (const auto failure = compared(fmt::format("gradient of x{}", i), outcome.gradients[i],
                                      expected.gradients[i], false))
      return failure;
  }
  return {};
}

/// Whether a value is far from what a type cannot hold. PyTorch is no reference beyond: its kernels
/// square divisors, skip infinite weights over padding, lose NaN in maxima, cancel digits of 1e4.
bool ordinary(const Number& x) {
  const Real size = std::fabs(x.value);
  return size == 0 || (size >= 1e-6L && size <= 1e3L);
}

bool ordinary(const Array& x) {
  return std::ranges::all_of(Scalars(x), [](const Scalar& s) { return ordinary(s.number); });
}

/// How much less exact than ours the kernels of PyTorch may be.
double inexactness(const Number& number) {
  const double largest =
      number.finite() ? std::max(1.0, static_cast<double>(std::fabs(number.value))) : 1;
  return (number.dtype == DType::float32 ? 1e-3 : 1e-8) * largest /
         static_cast<double>(number.format().unit);
}

std::optional<Failure> compared_with(const TorchSide& torch, const Case& sample) {
  if (!expected_of(sample, DType::float32).ordinary) return {};
  const auto answers = torch.evaluate(sample);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const DType dtype = i ? DType::float64 : DType::float32;
    if (!answers[i].error.empty()) return fault(dtype, "PyTorch", answers[i].error);
    const Expected expected = expected_of(sample, dtype, inexactness);
    auto value = answers[i].values.begin();
    const auto differs = [&](const std::string& what, const std::vector<Number>& numbers) {
      std::optional<Failure> failure;
      for (Number number : numbers) {
        number.error = 64 * number.error + inexactness(number);
        if (value == answers[i].values.end())
          return std::optional(fault(dtype, what, "has too few elements"));
        if (!failure && !agrees(*value, number, false))
          failure = difference(dtype, what, value - answers[i].values.begin(), *value, number);
        ++value;
      }
      return failure;
    };
    if (const auto failure = differs("PyTorch's output", expected.output)) return failure;
    for (std::size_t x = 0; x < expected.gradients.size(); ++x)
      if (const auto failure =
              differs(fmt::format("PyTorch's gradient of x{}", x), expected.gradients[x]))
        return failure;
  }
  return {};
}

std::string expectation(const std::string& of, const Failure& failure) {
  const std::string element = fmt::format("{}.values()[{}]", of, failure.element);
  if (std::isnan(failure.expected)) return fmt::format("CHECK(std::isnan({}))", element);
  if (failure.bound == 0 || std::isinf(failure.expected)) {
    const std::string equal = fmt::format("CHECK({} == {})", element, text(failure.expected));
    return failure.expected == 0
               ? equal + fmt::format(";\n  CHECK(std::signbit({}) == {})", element,
                                     text(std::signbit(failure.expected)))
               : equal;
  }
  return fmt::format("CHECK(std::abs({} - {}) <= {})", element, text(failure.expected),
                     text(failure.bound));
}

}  // namespace

In inputs_of(const Case& sample, DType dtype) {
  In inputs;
  for (const Input& input : sample.inputs)
    inputs.push_back(Tensor::from(input.values, input.shape, dtype));
  return inputs;
}

Tensor output_of(const Case& sample, const In& inputs) {
  return last_of<Tensor>(sample, inputs,
                         [](const Step& step, const In& operands) { return step.run(operands); });
}

Outcome outcome_of(const Case& sample, DType dtype) {
  const In inputs = inputs_of(sample, dtype);
  const std::vector<Parameter> parameters(inputs.begin(), inputs.end());
  Tensor y = output_of(sample, {parameters.begin(), parameters.end()});
  Outcome outcome{y.detach(), {}};
  Gradients gradients;
  if (y.node())
    gradients =
        gradients_of(sum(std::move(y) * Tensor::from(weights_of(sample, outcome.output.size()),
                                                     outcome.output.shape(), dtype)));
  for (const Parameter& parameter : parameters)
    outcome.gradients.push_back(gradients.has(parameter) ? gradients.of(parameter)
                                                         : Tensor::zeros(parameter.shape(), dtype));
  return outcome;
}

Expected expected_of(const Case& sample, DType dtype, double (*inexactness)(const Number&)) {
  Tape tape;
  Arrays inputs;
  for (const Input& input : sample.inputs) {
    Array x(sizes_of(input.shape));
    for (std::size_t i = 0; i < x.size(); ++i)
      x.flat(i) = tape.variable({held(input.values[i], dtype), 0, dtype, false});
    inputs.push_back(std::move(x));
  }
  bool all_ordinary = std::ranges::all_of(inputs, [](const Array& x) { return ordinary(x); });
  // Behind a division by 0 signs of zeros and orders of operations matter, which ops leave open.
  const auto open = [&](Number& x) {
    x.unsure = x.unsure || (sample.steps.size() > 1 && (!x.finite() || x.over()));
  };
  const Array y = last_of<Array>(sample, inputs, [&](const Step& step, const Arrays& operands) {
    Array result = step.oracle(operands);
    for (Scalar& s : result) {
      s.number.dtype = dtype;  // which an op cannot tell from operands without elements
      if (!s.tape) s = tape.variable(s.number);  // a constant may have an infinite derivative, too
      if (inexactness && &step != &sample.last()) s.number.loosen(inexactness(s.number));
      open(s.number);
    }
    all_ordinary = all_ordinary && ordinary(result);
    return result;
  });
  Expected expected{shape_of(y), {}, {}, all_ordinary && !tape.has_infinite_derivative()};
  for (const Scalar& s : y) expected.output.push_back(s.number);
  const auto derivatives = tape.derivatives(y, weights_of(sample, expected.shape.size()), dtype);
  std::size_t position = 0;
  for (const Input& input : sample.inputs) {
    const auto begin = derivatives.begin() + static_cast<std::ptrdiff_t>(position);
    expected.gradients.emplace_back(begin, begin + input.shape.size());
    std::ranges::for_each(expected.gradients.back(), open);
    expected.ordinary =
        expected.ordinary &&
        std::ranges::all_of(expected.gradients.back(), [](const Number& x) { return ordinary(x); });
    position += static_cast<std::size_t>(input.shape.size());
  }
  return expected;
}

std::optional<Failure> check(const Case& sample, const TorchSide* torch) {
  for (const DType dtype : {DType::float32, DType::float64})
    if (const auto failure = check(sample, dtype)) return failure;
  return torch ? compared_with(*torch, sample) : std::nullopt;
}

std::string call_of(const Case& sample, const Step& step) {
  std::string code = step.code;
  const std::size_t inputs = sample.inputs.size();
  for (std::size_t i = step.operands.size(); i-- > 0;) {
    const std::size_t operand = step.operands[i];
    const std::string name =
        operand < inputs ? fmt::format("x{}", operand) : fmt::format("y{}", operand - inputs);
    const std::string mark = fmt::format("${}", i);
    for (auto at = code.find(mark); at != std::string::npos; at = code.find(mark))
      code.replace(at, mark.size(), name);
  }
  return code;
}

std::string summary_of(const Failure& failure) {
  if (!failure.message.empty())
    return fmt::format("{}: {} ({})", failure.what, failure.message, to_string(failure.dtype));
  return fmt::format("{}, element {}: {}, expected {} within {} ({})", failure.what,
                     failure.element, text(failure.got), text(failure.expected),
                     text(failure.bound), to_string(failure.dtype));
}

std::string code_of(const Case& sample, const Failure& failure) {
  std::string code = fmt::format("  const DType dtype = DType::{};\n", to_string(failure.dtype));
  for (std::size_t i = 0; i < sample.inputs.size(); ++i)
    code += fmt::format("  const Parameter x{}(Tensor::from({}, {}, dtype));\n", i,
                        text(sample.inputs[i].values), text(sample.inputs[i].shape));
  for (std::size_t i = 0; i < sample.steps.size(); ++i)
    code += fmt::format("  const Tensor y{} = {};\n", i, call_of(sample, sample.steps[i]));
  const std::string y = fmt::format("y{}", sample.steps.size() - 1);
  std::string checked = y;
  if (failure.what.starts_with("PyTorch")) return code;
  if (failure.what != "output") {
    std::string weighted = y;
    if (const Shape shape = expected_of(sample, failure.dtype).shape; sample.weights.size() > 1)
      weighted += fmt::format(" * Tensor::from({}, {}, dtype)",
                              text(weights_of(sample, shape.size())), text(shape));
    code += fmt::format("  const Gradients gradients = gradients_of(sum({}));\n", weighted);
    checked = fmt::format("gradients.of({})", failure.what.substr(failure.what.rfind(' ') + 1));
  }
  if (failure.message.empty()) code += "  " + expectation(checked, failure) + ";\n";
  return code;
}

}  // namespace qkv::fuzz
