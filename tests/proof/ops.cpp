#include "tests/core/op_cases.h"
#include "tests/proof/proof.h"

namespace qkv::tests {

void prove_ops(Proof& proof) {
  for (const OpCase& sample : op_cases()) {
    const In inputs = inputs_of(sample, DType::float64);
    std::vector<Parameter> values(inputs.begin(), inputs.end());
    std::vector<NamedParameter> named;
    for (Parameter& value : values) named.push_back({std::to_string(named.size()), &value});
    proof.add("ops", {sample.label(), named, [&] {
                        return sample.call({values.begin(), values.end()});
                      }});
  }
}

}  // namespace qkv::tests
