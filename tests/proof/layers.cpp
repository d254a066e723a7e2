#include "layers/convolution.h"
#include "layers/embedding.h"
#include "layers/positions.h"
#include "layers/recurrent.h"
#include "layers/transformer.h"
#include "tests/proof/proof.h"

namespace qkv::tests {
namespace {

const AttentionMask padding{Indices({4, 2}, {2}), false};
const ModelOptions small{.width = 6, .layers = 2, .heads = 2, .feed_forward = 10};

void prove(Proof& proof, const std::string& label, Module& layer, const std::vector<Shape>& inputs,
           const ModuleCall& call) {
  prove_module(proof, "layers", label, layer, inputs, call);
}

using In = std::vector<Tensor>;

void prove_small_layers(Proof& proof) {
  Embedding embedding(7, 4, 1);
  prove(proof, "Embedding: an id twice", embedding, {}, [&](const In&, Context&) {
    return embedding(Indices({6, 0, 6, 1, 2, 2}, {2, 3}));
  });
  FeedForward exact(4, 9, true, ActivationKind::gelu);
  prove(proof, "FeedForward: exact GELU", exact, {{2, 5, 4}},
        [&](const In& x, Context&) { return exact(x[0]); });
  FeedForward rectified(4, 9, true, ActivationKind::relu);
  prove(proof, "FeedForward: ReLU", rectified, {{2, 5, 4}},
        [&](const In& x, Context&) { return rectified(x[0]); });
  FeedForward squared(4, 9, true, ActivationKind::relu_squared);
  prove(proof, "FeedForward: squared ReLU", squared, {{2, 5, 4}},
        [&](const In& x, Context&) { return squared(x[0]); });
  LayerNorm other(6, true, 1e-3);
  prove(proof, "LayerNorm: another epsilon", other, {{2, 5, 6}},
        [&](const In& x, Context&) { return other(x[0]); });
  Conv1d convolution(3, 4, 4);
  prove(proof, "Conv1d: even kernel", convolution, {{2, 5, 3}},
        [&](const In& x, Context&) { return convolution(x[0]); });
  MultiHeadAttention attention(small);
  prove(proof, "MultiHeadAttention: self, padding and a bias", attention, {{2, 4, 6}, {2, 4, 4}},
        [&](const In& x, Context& context) {
          return attention(x[0], x[0], {padding.key_lengths, false, x[1]}, context);
        });
}

void prove_transformers(Proof& proof) {
  const AttentionInputs inputs{.mask = padding};
  Transformer encoder(small);
  prove(proof, "Transformer: encoder of two blocks, padding", encoder, {{2, 4, 6}},
        [&](const In& x, Context& context) { return encoder(x[0], inputs, context); });
  Transformer decoder(small, true);
  prove(proof, "Transformer: decoder of two blocks, causal", decoder, {{2, 3, 6}, {2, 4, 6}},
        [&](const In& x, Context& context) {
          return decoder(x[0],
                         {.mask = {.key_lengths = {}, .causal = true},
                          .encoded = x[1],
                          .encoded_lengths = padding.key_lengths},
                         context);
        });
}

void prove_recurrent(Proof& proof) {
  for (const auto& [name, cell] : {std::pair("rnn", CellKind::rnn), std::pair("gru", CellKind::gru),
                                   std::pair("lstm", CellKind::lstm)}) {
    ModelOptions options = small;
    options.cell = cell;
    options.bidirectional = true;
    Recurrent layer(options);
    std::vector<Shape> inputs = {{2, 4, 6}, {4, 2, 3}};
    if (cell == CellKind::lstm) inputs.push_back({4, 2, 3});
    prove(proof, fmt::format("Recurrent: {}, from a state, with the last", name), layer, inputs,
          [&](const In& x, Context& context) {
            const RecurrentState initial{x[1], x.size() > 2 ? x[2] : Tensor()};
            const RecurrentOutput y = layer(x[0], padding.key_lengths, initial, context);
            const auto flat = [](const Tensor& z) { return reshape(z, {-1}); };
            const Tensor states = concatenate({flat(y.states), flat(y.last.h)}, 0);
            return y.last.c ? concatenate({states, flat(y.last.c)}, 0) : states;
          });
  }
}

/// Proves each kind of positional encoding on x [2, 4, 6], from a position other than 0.
void prove_positions(Proof& proof) {
  ModelOptions options = small;
  for (const auto& [name, kind] : {std::pair("sinusoidal", PositionKind::sinusoidal),
                                   std::pair("learned", PositionKind::learned)}) {
    options.position = kind;
    const auto positions = make_input_positions(options);
    prove(proof, fmt::format("InputPositions: {}", name), *positions, {{2, 4, 6}},
          [&](const In& x, Context&) { return x[0] + positions->encoding(3, 4, x[0].dtype()); });
  }
  options.max_distance = 2;
  for (const auto& [name, kind] : {std::pair("relative", PositionKind::relative),
                                   std::pair("windows", PositionKind::windows)}) {
    options.position = kind;
    const auto positions = make_attention_positions(options);
    prove(proof, fmt::format("AttentionPositions: {}", name), *positions, {{2, 2, 3, 4}},
          [&](const In& x, Context&) {
            return x[0] + positions->score_bias(2, 1, 3, 4, x[0].dtype());
          });
  }
  options.position = PositionKind::rotary;
  const auto rotary = make_attention_positions(options);
  prove(proof, "AttentionPositions: rotary", *rotary, {{2, 4, 6}},
        [&](const In& x, Context&) { return rotary->query_key(x[0], 1, 3); });
}

}  // namespace

void prove_layers(Proof& proof) {
  prove_small_layers(proof);
  prove_transformers(proof);
  prove_recurrent(proof);
  prove_positions(proof);
}

}  // namespace qkv::tests
