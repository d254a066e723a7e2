#include "layers/embedding.h"
#include "layers/encoder.h"
#include "tests/proof/proof.h"
#include "tests/support/numbers.h"

namespace qkv::tests {
namespace {

const AttentionMask padding{Indices({4, 2}, {2}), false};
const ModelOptions small{.width = 6, .layers = 2, .heads = 2, .feed_forward = 10};

/// A layer with the tensors that go in, named "inputs.0", "inputs.1", ...; its parameters' names
/// follow "parameters.". Every number is drawn anew, so that biases and gains are not 0 and 1.
template <class Call>
void prove(Proof& proof, const std::string& label, Module& layer, const std::vector<Shape>& inputs,
           Call call) {
  std::uint64_t stream = 0;
  std::vector<Parameter> tensors;
  for (const Shape& shape : inputs) tensors.emplace_back(numbers(shape, DType::float64, ++stream));
  ProofRow row{label, {}, [&] {
                 Context context;
                 return call(std::vector<Tensor>(tensors.begin(), tensors.end()), context);
               }};
  for (std::size_t i = 0; i < tensors.size(); ++i)
    row.parameters.push_back({fmt::format("inputs.{}", i), &tensors[i]});
  for (const auto& [path, parameter] : parameters(layer)) {
    parameter->assign(numbers(parameter->shape(), DType::float64, ++stream) * 0.3);
    row.parameters.push_back({"parameters." + path, parameter});
  }
  proof.add("layers", row);
}

using In = std::vector<Tensor>;

void prove_small_layers(Proof& proof, Random& random) {
  Linear linear(4, 3, random), unbiased(4, 3, random, false);
  prove(proof, "Linear: with bias", linear, {{2, 5, 4}},
        [&](const In& x, Context&) { return linear(x[0]); });
  prove(proof, "Linear: without bias", unbiased, {{5, 4}},
        [&](const In& x, Context&) { return unbiased(x[0]); });
  LayerNorm norm(6);
  prove(proof, "LayerNorm: rows", norm, {{2, 5, 6}},
        [&](const In& x, Context&) { return norm(x[0]); });
  Embedding embedding(7, 4, 1, random);
  prove(proof, "Embedding: an id twice", embedding, {}, [&](const In&, Context&) {
    return embedding(Indices({6, 0, 6, 1, 2, 2}, {2, 3}));
  });
  FeedForward feed_forward(4, 9, random);
  prove(proof, "FeedForward: sequences", feed_forward, {{2, 5, 4}},
        [&](const In& x, Context&) { return feed_forward(x[0]); });
}

void prove_attention(Proof& proof, Random& random) {
  const AttentionMask causal{{}, true};
  MultiHeadAttention attention(small, random);
  prove(proof, "MultiHeadAttention: self, padding", attention, {{2, 4, 6}},
        [&](const In& x, Context& context) { return attention(x[0], x[0], padding, context); });
  prove(proof, "MultiHeadAttention: self, causal", attention, {{2, 4, 6}},
        [&](const In& x, Context& context) { return attention(x[0], x[0], causal, context); });
  prove(proof, "MultiHeadAttention: cross, padding", attention, {{2, 3, 6}, {2, 4, 6}},
        [&](const In& x, Context& context) { return attention(x[0], x[1], padding, context); });
}

void prove_encoders(Proof& proof, Random& random) {
  EncoderBlock block(small, random);
  prove(proof, "EncoderBlock: padding", block, {{2, 4, 6}},
        [&](const In& x, Context& context) { return block(x[0], padding, context); });
  Encoder encoder(small, random);
  prove(proof, "Encoder: two blocks, padding", encoder, {{2, 4, 6}},
        [&](const In& x, Context& context) { return encoder(x[0], padding, context); });
}

}  // namespace

void prove_layers(Proof& proof) {
  Random random(1, Purpose::testing);
  prove_small_layers(proof, random);
  prove_attention(proof, random);
  prove_encoders(proof, random);
}

}  // namespace qkv::tests
