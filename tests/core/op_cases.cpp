#include "tests/core/op_cases.h"

namespace qkv::tests {

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    for (const auto* family : {&elementwise_cases(), &shape_cases(), &reduction_cases(),
                               &layer_cases(), &recurrent_cases(), &loss_cases()})
      all.insert(all.end(), family->begin(), family->end());
    return all;
  }();
  return cases;
}

In inputs_of(const OpCase& sample, DType dtype) {
  In inputs;
  Random streams(3, Purpose::testing);
  for (const Shape& shape : sample.shapes) {
    const Random stream = streams.next();
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = sample.low + (sample.high - sample.low) * stream.uniform(i);
    inputs.push_back(Tensor::from(values, shape, dtype));
  }
  return inputs;
}

}  // namespace qkv::tests
