#include "layers/model.h"

#include <array>

#include "layers/convolution.h"
#include "layers/fixed_length.h"
#include "layers/initialise.h"
#include "layers/pretrained.h"
#include "layers/recurrent.h"
#include "layers/transformer.h"

namespace qkv {
namespace {

/// The embedding alone: a token has the same vector in every context.
struct StaticModel final : Model {
  StaticModel(const ModelOptions& options, Index vocabulary) : Model(options, vocabulary) {}

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    return contextual(embedded(ids, lengths, context), context);
  }
  void visit(ModuleVisitor& visit) override { visit("embedding", embedding); }
};

/// Puts one-hot vectors, which are not trained, or those of a file into the embedding table.
void prepare_table(Model& model, const ModelOptions& options, std::span<const std::string> tokens) {
  Parameter& table = model.embedding.weight;
  const Index vocabulary = table.shape()[0];
  const bool one_hot = options.embedding == EmbeddingKind::one_hot;
  require<ValueError>(!one_hot || options.width == vocabulary,
                      "[model] one-hot vectors of {} tokens need width = {}, got {}", vocabulary,
                      vocabulary, options.width);
  if (!options.embedding_file.empty()) {
    require<ValueError>(!one_hot,
                        "[model] one-hot vectors take no embedding_file, got {}; leave one of the "
                        "two out",
                        options.embedding_file);
    require<ValueError>(std::ssize(tokens) == vocabulary,
                        "[model] embedding_file {} needs the {} tokens of the vocabulary, got {}; "
                        "give them to make_model",
                        options.embedding_file, vocabulary, tokens.size());
    model.vectors = load_vectors(options.embedding_file, tokens, table);
  }
  if (one_hot) table.assign(identity(vocabulary));
  if (one_hot) table.freeze();
}

std::unique_ptr<Model> make_static_model(const ModelOptions& options, Index vocabulary) {
  return std::make_unique<StaticModel>(options, vocabulary);
}

constexpr auto model_rows = std::to_array<ModelRow>({
    {ModelKind::encoder, "encoder", "transformer that attends to all tokens",
     make_transformer_model},
    {ModelKind::bert, "bert",
     "encoder with token types, a norm of its input, a pooler of the first token, and before a "
     "tied "
     "output a linear layer, activation and norm (Devlin et al. 2019)",
     make_transformer_model},
    {ModelKind::decoder, "decoder", "transformer that attends to earlier tokens alone",
     make_transformer_model},
    {ModelKind::encoder_decoder, "encoder-decoder", "one of each with cross-attention",
     make_transformer_model},
    {ModelKind::recurrent, "recurrent", "see model.cell", make_recurrent_model},
    {ModelKind::convolution, "convolution", "kernels of 3, 4 and 5 tokens", make_convolution_model},
    {ModelKind::fixed_length, "feed-forward", "one hidden layer over all positions",
     make_fixed_length_model},
    {ModelKind::static_embedding, "static", "embedding without context", make_static_model},
});
static_assert(lists_every_kind(model_rows));

}  // namespace

Tensor Model::embedded(const Indices& ids, const Indices& lengths, const Context& context) const {
  require(ids.shape().rank() == 2,
          "[model] token ids have the shape [batch, time], got {}; a single sequence of T ids is "
          "(1, T)",
          ids.shape());
  require(lengths.size() == 0 || lengths.shape() == Shape{ids.dim(0)},
          "[model] ids {} need one length for each sequence, ({},), got {}", ids.shape(),
          ids.dim(0), lengths.shape());
  return context.hooked(*this, "static", embedding(ids));
}

Tensor Model::contextual(Tensor x, const Context& context) const {
  return context.hooked(*this, "contextual", std::move(x));
}

std::vector<FormulaSource::Row> Model::formulas() const {
  return {{"static", {"e_i", "E[token_i]", "embedding: the word's row of the table"}},
          {"contextual", {"y_i", "", "contextual vector"}}};
}

Tensor Model::decode(const Indices&, const Tensor&, const Indices&, Context&) const {
  throw ValueError(
      "[model] this kind of model has no decoder with cross-attention; make one of kind "
      "\"encoder-decoder\"");
}

std::span<const ModelRow> model_kinds() {
  return model_rows;
}

std::unique_ptr<Model> make_model(const ModelOptions& options, Index vocabulary, Random& random,
                                  std::span<const std::string> tokens) {
  std::unique_ptr<Model> model = row_of(model_rows, options.kind).make(options, vocabulary);
  initialise(*model, random);
  prepare_table(*model, options, tokens);
  return model;
}

}  // namespace qkv
