#include "tests/fuzz/families.h"
#include "tests/ops/samples.h"
#include "tests/proof/proof.h"

namespace qkv::tests {
namespace {

constexpr double small_lr = 1e-5;  // operands stay in the op's domain

void prove_calls(Proof& proof, const std::string& section,
                 const std::vector<fuzz::OpSample>& samples) {
  for (const fuzz::OpSample& sample : samples) {
    if (sample.op == "attention_weights") continue;  // constants, in `attention`
    const auto inputs = fuzz::inputs_of(sample.call, DType::float64);
    std::vector<Parameter> values(inputs.begin(), inputs.end());
    std::vector<NamedParameter> named;
    for (Parameter& value : values) named.push_back({std::to_string(named.size()), &value});
    proof.describe(sample.label(), sample.code());
    proof.add(section, {sample.label(), named,
                        [&] {
                          return fuzz::output_of(sample.call, {values.begin(), values.end()});
                        },
                        small_lr, sample.detaches()});
  }
}

}  // namespace

void prove_ops(Proof& proof) {
  prove_calls(proof, "ops", fuzz::op_samples());
}

void prove_layer_rows(Proof& proof) {
  prove_calls(proof, "layers", fuzz::samples_of(fuzz::module_draws()));
}

}  // namespace qkv::tests
