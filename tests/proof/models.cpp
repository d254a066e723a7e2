#include "layers/model.h"
#include "tests/proof/proof.h"

namespace qkv::tests {
namespace {

const ModelOptions small{.width = 6, .layers = 2, .heads = 2, .feed_forward = 10, .max_length = 8};
const Indices ids({6, 1, 0, 1, 2, 5, 3, 3}, {2, 4}), lengths({4, 2}, {2});
const Indices output_ids({1, 4, 4, 2, 0, 6}, {2, 3});

/// The vectors that a model gives to the words of two sentences, followed by the sentences' own; of
/// an encoder-decoder, those of its output's words.
void prove(Proof& proof, const std::string& label, const ModelOptions& options) {
  Random random(2, Purpose::testing);
  const auto model = make_model(options, 7, random);
  prove_module(proof, "models", label, *model, {},
               [&](const std::vector<Tensor>&, Context& context) {
                 const Tensor x = (*model)(ids, lengths, context);
                 if (options.kind == ModelKind::encoder_decoder)
                   return model->decode(output_ids, x, lengths, context);
                 return concatenate({x, reshape(model->sentence(x, lengths), {2, 1, -1})}, 1);
               });
}

/// `small` as a model of this kind, changed by `change`.
template <class Change>
ModelOptions with(ModelKind kind, Change change) {
  ModelOptions options = small;
  options.kind = kind;
  change(options);
  return options;
}

}  // namespace

void prove_models(Proof& proof) {
  const auto unchanged = [](ModelOptions&) {};
  prove(proof, "encoder: sinusoidal positions", with(ModelKind::encoder, unchanged));
  prove(proof, "bert: norms after, exact GELU", with(ModelKind::bert, [](ModelOptions& options) {
          options.position = PositionKind::learned;
          options.norm = NormKind::post;
          options.activation = ActivationKind::gelu;
        }));
  prove(proof, "decoder: learned positions", with(ModelKind::decoder, [](ModelOptions& options) {
          options.position = PositionKind::learned;
        }));
  prove(proof, "decoder: rotary positions", with(ModelKind::decoder, [](ModelOptions& options) {
          options.position = PositionKind::rotary;
          options.heads = 1;
        }));
  prove(proof, "encoder_decoder: sinusoidal positions",
        with(ModelKind::encoder_decoder, unchanged));
  prove(proof, "recurrent: lstm, both ways",
        with(ModelKind::recurrent, [](ModelOptions& options) { options.bidirectional = true; }));
  prove(proof, "convolution: two layers", with(ModelKind::convolution, unchanged));
  prove(proof, "fixed_length: a hidden layer", with(ModelKind::fixed_length, unchanged));
  prove(proof, "static_embedding: vectors", with(ModelKind::static_embedding, unchanged));
}

}  // namespace qkv::tests
