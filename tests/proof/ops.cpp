#include "tests/ops/samples.h"
#include "tests/proof/proof.h"

namespace qkv::tests {

void prove_ops(Proof& proof) {
  for (const fuzz::OpSample& sample : fuzz::op_samples()) {
    const auto inputs = fuzz::inputs_of(sample.call, DType::float64);
    std::vector<Parameter> values(inputs.begin(), inputs.end());
    std::vector<NamedParameter> named;
    for (Parameter& value : values) named.push_back({std::to_string(named.size()), &value});
    proof.describe(sample.code());
    proof.add("ops", {sample.label(), named,
                      [&] {
                        return fuzz::output_of(sample.call, {values.begin(), values.end()});
                      },
                      sample.detaches()});
  }
}

}  // namespace qkv::tests
