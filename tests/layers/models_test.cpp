#include <cmath>

#include "layers/convolution.h"
#include "layers/recurrent.h"
#include "layers/transformer.h"
#include "tests/support/errors.h"
#include "tests/support/modules.h"

namespace qkv::tests {
namespace {

const ModelOptions convolution{.kind = ModelKind::convolution, .width = 7, .layers = 2};
const ModelOptions fixed_length{
    .kind = ModelKind::fixed_length, .width = 3, .feed_forward = 4, .max_length = 5};
const ModelOptions transformer{.width = 8, .layers = 2, .heads = 4, .feed_forward = 6};

ModelOptions with(ModelOptions options, ModelKind kind) {
  options.kind = kind;
  return options;
}

ModelOptions grouped() {
  ModelOptions options = transformer;
  options.kv_heads = 2;
  return options;
}

ModelOptions normalised_after() {
  ModelOptions options = transformer;
  options.norm = NormKind::post;
  return options;
}

std::string refusal(const ModelOptions& options) {
  return error_of<ValueError>([&] {
    Random random = fresh();
    make_model(options, 9, random);
  });
}

}  // namespace

TEST_CASE("a convolution model divides its width between kernels of 3, 4 and 5 words") {
  Random random = fresh();
  const auto model = make_model(convolution, 9, random);
  const auto shapes = shapes_of(*model);
  CHECK(shapes.size() == 13);
  CHECK(shapes.at("embedding.weight") == Shape{9, 7});
  CHECK(shapes.at("convolution.layers.0.kernels.0.weight") == Shape{2, 7, 3});
  CHECK(shapes.at("convolution.layers.1.kernels.1.weight") == Shape{2, 7, 4});
  CHECK(shapes.at("convolution.layers.1.kernels.2.weight") == Shape{3, 7, 5});
  CHECK(shapes.at("convolution.layers.1.kernels.2.bias") == Shape{3});
  CHECK(refusal({.kind = ModelKind::convolution, .width = 2}) ==
        "[convolution] 3 kernels need a width of 3 at least, got 2");
}

TEST_CASE("the parameters of a fixed-length model grow with the length it is built for") {
  Random random = fresh();
  const auto model = make_model(fixed_length, 9, random);
  CHECK(shapes_of(*model) == std::map<std::string, Shape>{{"embedding.weight", {9, 3}},
                                                          {"feed_forward.w_1.weight", {4, 15}},
                                                          {"feed_forward.w_1.bias", {4}},
                                                          {"feed_forward.w_2.weight", {15, 4}},
                                                          {"feed_forward.w_2.bias", {15}}});
  Context context;
  CHECK(error_of<ValueError>([&] {
          (*model)(Indices({1, 2, 3, 4, 5, 6}, {1, 6}), Indices({6}, {1}), context);
        }) ==
        "[feed-forward] a sequence of 6 tokens is longer than max_length = 5; cut the sequence or "
        "raise max_length");
  ModelOptions options = fixed_length;
  options.feed_forward = 0;
  CHECK(refusal(options) == "[feed-forward] the model needs a hidden layer, got feed_forward = 0");
}

TEST_CASE("models and layers without a context are evaluated") {
  ModelOptions options{.width = 4, .heads = 2, .feed_forward = 8, .dropout = 0.5};
  Random random = fresh();
  const auto model = make_model(options, 9, random);
  const Indices ids({1, 2, 3}, {1, 3});
  Context evaluation;
  CHECK((*model)(ids).values() == (*model)(ids, {}, evaluation).values());

  const auto stack = initialised<Transformer>(options);
  const Tensor x = model->embedding(ids);
  CHECK(stack(x).values() == stack(x, {}, evaluation).values());
  const auto& block = stack.layers.front();
  CHECK(block(x).values() == block(x, {}, evaluation).values());
  CHECK(block.attention(x, x).values() == block.attention(x, x, {}, evaluation).values());

  options.layers = 2;
  const auto recurrent = initialised<Recurrent>(options);
  const Indices lengths({3}, {1});
  CHECK(recurrent(x, lengths).values() == recurrent(x, lengths, evaluation).values());
}

TEST_CASE("the receptive field of position t is [t - (K - 1) / 2, t + K / 2]") {
  for (const Index kernel : {1, 2, 3, 4, 5}) {
    CAPTURE(kernel);
    auto layer = initialised<Conv1d>(1, 1, kernel);
    layer.weight.assign(Tensor::full({1, 1, kernel}, 1));
    // The 1 at position 4 of 9 is in the receptive field of these positions.
    const auto y = layer(Tensor::from({0, 0, 0, 0, 1, 0, 0, 0, 0}, {1, 9, 1})).values();
    for (Index t = 0; t < 9; ++t)
      CHECK(y[static_cast<std::size_t>(t)] == (t - (kernel - 1) / 2 <= 4 && 4 <= t + kernel / 2));
  }
}

TEST_CASE("a decoder starts as GPT-2, its layers that write to the residual stream smaller") {
  ModelOptions options = with(transformer, ModelKind::decoder);
  options.width = 48;
  options.layers = 4;
  options.feed_forward = 96;
  options.position = PositionKind::learned;
  Random random = fresh();
  const auto model = make_model(options, 50, random);
  Index residual = 0;
  for (const auto& [path, parameter] : parameters(*model)) {
    if (parameter->shape().rank() != 2) continue;
    CAPTURE(path);
    const bool writes = writes_to_residual(parameter->role());
    residual += writes;
    const Tensor& w = *parameter;
    const double std = std::sqrt(mean(w * w).item());
    // Two additions to the residual stream for each of 4 layers.
    CHECK(std / (writes ? 0.02 / std::sqrt(8) : 0.02) == doctest::Approx(1).epsilon(0.03));
  }
  CHECK(residual == 8);
  // Relative positions are biases of scores.
  options.position = PositionKind::relative;
  const auto relative = make_model(options, 50, random);
  for (const auto& [path, parameter] : parameters(*relative))
    if (parameter->role() == Role::position) {
      CAPTURE(path);
      const Tensor& table = *parameter;
      CHECK(sum(table * table).item() == 0);
    }
}

TEST_CASE("a fixed-length model has the activation that its options ask for") {
  const Indices ids(std::vector<std::int32_t>{1, 2, 3}, {1, 3});
  const auto vectors = [&](ActivationKind activation) {
    ModelOptions options = fixed_length;
    options.activation = activation;
    Random random = fresh();
    const auto model = make_model(options, 9, random);
    Context context;
    return (*model)(ids, {}, context).values();
  };
  const auto tanh = vectors(ActivationKind::gelu_tanh), exact = vectors(ActivationKind::gelu);
  double worst = 0;
  for (std::size_t i = 0; i < tanh.size(); ++i)
    worst = std::max(worst, std::abs(tanh[i] - exact[i]));
  CHECK(worst > 1e-7);
  CHECK(worst < 1e-2);
}

TEST_CASE("every kind of model drops values in training, and only there") {
  for (const ModelKind kind : {ModelKind::encoder, ModelKind::decoder, ModelKind::recurrent,
                               ModelKind::convolution, ModelKind::fixed_length}) {
    CAPTURE(static_cast<int>(kind));
    ModelOptions options = with(transformer, kind);
    options.dropout = 0.5;
    options.max_length = 5;
    Random random = fresh();
    const auto model = make_model(options, 9, random);
    const auto run = [&](Context context) {
      return (*model)(Indices({5, 6, 7}, {1, 3}), Indices({3}, {1}), context).values();
    };
    CHECK(run(Context()) == run(Context()));
    CHECK(run(Context({.random = Random(1, Purpose::dropout)})) != run(Context()));
    CHECK(run(Context({.random = Random(1, Purpose::dropout)})) !=
          run(Context({.random = Random(2, Purpose::dropout)})));
  }
}

TEST_CASE("heads that share keys and values have narrower projections") {
  Random random = fresh();
  const auto model = make_model(grouped(), 9, random);
  const auto shapes = shapes_of(*model);
  CHECK(shapes.at("encoder.layers.0.attention.w_q.weight") == Shape{8, 8});
  CHECK(shapes.at("encoder.layers.0.attention.w_k.weight") == Shape{4, 8});
  CHECK(shapes.at("encoder.layers.0.attention.w_v.bias") == Shape{4});
  ModelOptions wrong = grouped();
  wrong.kv_heads = 3;
  CHECK(refusal(wrong) == "[attention] 3 heads of keys and values do not divide the 4 of queries");
}

TEST_CASE("blocks that normalise after their parts have no last norm, and normalised output") {
  Random random = fresh();
  const auto model = make_model(normalised_after(), 9, random);
  CHECK(paths_of(*model).back() == "encoder.layers.1.feed_forward.w_2.bias");
  convert(*model, DType::float64);
  Context context;
  const Tensor y = (*model)(Indices({5, 6}, {1, 2}), Indices({2}, {1}), context);
  CHECK(mean(y).item() == doctest::Approx(0));
  CHECK(mean(y * y).item() == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("an encoder-decoder names its cross-attention") {
  Random random = fresh();
  const auto model = make_model(with(transformer, ModelKind::encoder_decoder), 7, random);
  const auto shapes = shapes_of(*model);
  CHECK(shapes.contains("encoder.layers.1.attention.w_q.weight"));
  CHECK_FALSE(shapes.contains("encoder.layers.1.cross_attention.w_q.weight"));
  CHECK(shapes.at("decoder.layers.1.cross_attention.w_q.weight") == Shape{8, 8});
  CHECK(shapes.contains("decoder.layers.0.norm_cross.bias"));
  CHECK(shapes.contains("decoder.norm.weight"));
}

TEST_CASE("without positions the order of words changes no bit of their vectors") {
  Random random = fresh();
  ModelOptions options = with(transformer, ModelKind::encoder);
  options.position = PositionKind::none;
  const auto model = make_model(options, 9, random);
  convert(*model, DType::float64);
  // the man beats the boy, the boy beats the man
  const Tensor y = [&] {
    Context context;
    return (*model)(Indices({2, 3, 4, 2, 5, 2, 5, 4, 2, 3}, {2, 5}), Indices({5, 5}, {2}), context);
  }();
  const Tensor rounded = y.to(DType::float32);
  const auto word = [&](Index sentence, Index place) {
    return slice(slice(rounded, 0, sentence, sentence + 1), 1, place, place + 1).values();
  };
  CHECK(word(0, 1) == word(1, 4));
  CHECK(word(0, 4) == word(1, 1));
  CHECK(word(0, 2) == word(1, 2));
  CHECK(word(0, 1) != word(0, 4));
}

TEST_CASE("beside a parameter-free encoder the decoder is learned") {
  Random random = fresh();
  ModelOptions options = with(transformer, ModelKind::encoder_decoder);
  options.attention = AttentionKind::parameter_free;
  const auto model = make_model(options, 7, random);
  const auto paths = paths_of(*model);
  CHECK(std::ranges::none_of(paths, [](const auto& p) { return p.starts_with("encoder."); }));
  const auto shapes = shapes_of(*model);
  CHECK(shapes.contains("decoder.layers.0.attention.w_q.weight"));
  CHECK(shapes.contains("decoder.layers.0.cross_attention.w_q.weight"));
}

TEST_CASE("every kind of model has the static vectors that its options ask for") {
  for (const ModelKind kind :
       {ModelKind::encoder, ModelKind::decoder, ModelKind::encoder_decoder, ModelKind::recurrent,
        ModelKind::convolution, ModelKind::fixed_length, ModelKind::static_embedding}) {
    CAPTURE(static_cast<int>(kind));
    ModelOptions options{.kind = kind, .width = 6, .layers = 1, .heads = 2, .feed_forward = 8};
    options.embedding = EmbeddingKind::one_hot;
    Random random(1, Purpose::testing);
    const auto model = make_model(options, 6, random);
    const auto values = model->embedding_table().value().values();
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == (i % 7 == 0 ? 1 : 0));
    CHECK(model->embedding_table().frozen());
    CHECK_THROWS_AS(make_model(options, 5, random), ValueError);
    options.embedding = EmbeddingKind::learned;
    CHECK_FALSE(make_model(options, 5, random)->embedding_table().frozen());
  }
}

TEST_CASE("a model without cross-attention cannot decode") {
  Random random = fresh();
  const auto model = make_model(transformer, 9, random);
  Context context;
  CHECK_THROWS_WITH_AS(
      model->decode(Indices({1}, {1, 1}), randn({1, 2, 8}), Indices({2}, {1}), context),
      "[model] this kind of model has no decoder with cross-attention; make one of kind "
      "\"encoder-decoder\"",
      ValueError);
}

TEST_CASE("a decoder with a cache can be recorded") {
  Random random = fresh();
  const auto model = make_model(with(grouped(), ModelKind::decoder), 9, random);
  convert(*model, DType::float64);
  Recorder whole(*model), step(*model);
  Context at_once({.recorder = &whole});
  (*model)(Indices({5, 6, 7}, {1, 3}), {}, at_once);
  KeyValueCache cache;
  Context by_token({.recorder = &step, .cache = &cache});
  for (const std::int32_t id : {5, 6, 7}) (*model)(Indices({id}, {1, 1}), {}, by_token);
  const std::string path = "decoder.layers.0.attention.weights";
  CHECK(step.at(path).shape()[2] == 1);
  const auto actual = step.at(path).values(), expected = slice(whole.at(path), 2, 2, 3).values();
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

}  // namespace qkv::tests
