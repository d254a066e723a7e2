#include <doctest/doctest.h>

#include <cmath>

#include "layers/embedding.h"
#include "layers/transformer.h"
#include "tests/support/modules.h"

namespace qkv::tests {
namespace {

ModelOptions small(AttentionKind kind) {
  return {.width = 6, .layers = 2, .heads = 2, .attention = kind, .feed_forward = 5};
}

}  // namespace

TEST_CASE("linear computes x W^T + b with W [out, in]") {
  Random random = fresh();
  Linear layer(2, 3, random);
  CHECK(paths_of(layer) == std::vector<std::string>{"weight", "bias"});
  layer.weight.assign(Tensor::from({1, 2, 3, 4, 5, 6}, {3, 2}));
  layer.bias->assign(Tensor::from({10, 20, 30}, {3}));
  CHECK(layer(Tensor::from({1, 1}, {1, 2})).values() == std::vector<double>{13, 27, 41});
}

TEST_CASE("attention names w_q, w_k, w_v and w_o, and only those that its form learns") {
  Random random = fresh();
  MultiHeadAttention learned(small(AttentionKind::learned), random);
  CHECK(paths_of(learned) == std::vector<std::string>{"w_q.weight", "w_q.bias", "w_k.weight",
                                                      "w_k.bias", "w_v.weight", "w_v.bias",
                                                      "w_o.weight", "w_o.bias"});
  MultiHeadAttention uniform(small(AttentionKind::uniform), random);
  CHECK(paths_of(uniform) ==
        std::vector<std::string>{"w_v.weight", "w_v.bias", "w_o.weight", "w_o.bias"});
  MultiHeadAttention parameter_free(small(AttentionKind::parameter_free), random);
  CHECK(paths_of(parameter_free).empty());
}

TEST_CASE("parameter-free attention is softmax(X X^T) X") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::parameter_free);
  options.scale = false;
  const MultiHeadAttention attend(options, random);
  const Tensor x = randn({1, 3, 6});
  Context context;
  const auto actual = attend(x, x, {}, context).values();
  const auto expected = matmul(softmax(matmul(x, x, Transpose::second)), x).values();
  for (std::size_t i = 0; i < actual.size(); ++i) CHECK(actual[i] == doctest::Approx(expected[i]));
}

TEST_CASE("uniform attention gives every key the same weight") {
  Random random = fresh();
  MultiHeadAttention attend(small(AttentionKind::uniform), random);
  Recorder recorder(attend);
  Context context({.recorder = &recorder});
  const Tensor x = randn({1, 4, 6});
  attend(x, x, {}, context);
  for (const double weight : recorder.at("weights").values())
    CHECK(weight == doctest::Approx(0.25));
}

TEST_CASE("heads that do not divide the width are an error with both numbers") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::learned);
  options.heads = 4;
  CHECK_THROWS_WITH_AS(MultiHeadAttention(options, random),
                       "[attention] 4 heads do not divide the width 6", ValueError);
}

TEST_CASE("an encoder lists the same paths as its checkpoints") {
  Random random = fresh();
  const auto model = make_model(small(AttentionKind::learned), 7, random);
  const auto paths = paths_of(*model);
  CHECK(paths.front() == "embedding.weight");
  CHECK(paths[1] == "encoder.layers.0.norm_1.weight");
  CHECK(std::ranges::find(paths, "encoder.layers.1.attention.w_q.weight") != paths.end());
  CHECK(std::ranges::find(paths, "encoder.layers.1.feed_forward.w_2.bias") != paths.end());
  CHECK(paths.back() == "encoder.norm.bias");
}

TEST_CASE("whole encoders of every form of attention pass the gradient check in float64") {
  const Tensor x = randn({2, 4, 6}, DType::float64);
  const AttentionMask mask{Indices({4, 2}, {2}), false};
  for (const auto kind :
       {AttentionKind::learned, AttentionKind::uniform, AttentionKind::parameter_free}) {
    CAPTURE(static_cast<int>(kind));
    Random random = fresh();
    Transformer encoder(small(kind), random);
    const GradientCheck check = checked(encoder, [&] {
      Context context;
      return encoder(x, {mask, {}, {}}, context);
    });
    CAPTURE(check.parameter);
    CHECK(check.error < 1e-6);
  }
}

TEST_CASE("an encoder in training, with dropout, passes the gradient check") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::learned);
  options.dropout = 0.3;
  const Surroundings alone;
  Transformer encoder(options, random);
  const Tensor x = randn({2, 4, 6}, DType::float64);
  const GradientCheck check = checked(encoder, [&] {
    Context context({.random = Random(1, Purpose::dropout)});
    return encoder(x, alone, context);
  });
  CHECK(check.error < 1e-6);
}

TEST_CASE("encoder and static models pass the gradient check in float64") {
  check_gradients_of_model(small(AttentionKind::learned));
  check_gradients_of_model({.kind = ModelKind::static_embedding, .width = 3});
}

TEST_CASE("a padded sentence gives the same numbers as alone") {
  check_padding_of_model(small(AttentionKind::learned));
  check_padding_of_model({.kind = ModelKind::static_embedding, .width = 3});
}

TEST_CASE("without positions an encoder cannot tell word orders apart; with them it can") {
  const auto outputs = [](PositionKind position) {
    Random random = fresh();
    ModelOptions options = small(AttentionKind::learned);
    options.position = position;
    const auto model = make_model(options, 9, random);
    convert(*model, DType::float64);
    Context context;
    const auto first_row = [&](const Indices& ids) {
      return slice((*model)(ids, Indices({3}, {1}), context), 1, 0, 1).values();
    };
    return std::pair(first_row(Indices({5, 6, 7}, {1, 3})), first_row(Indices({5, 7, 6}, {1, 3})));
  };
  const auto [a, b] = outputs(PositionKind::none);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
  const auto [c, d] = outputs(PositionKind::sinusoidal);
  CHECK(c != d);
}

TEST_CASE("sinusoidal positions follow the formula") {
  const auto y = with_sinusoidal_positions(Tensor::zeros({1, 3, 4}, DType::float64)).values();
  CHECK(y[0] == 0);
  CHECK(y[1] == 1);
  CHECK(y[8] == doctest::Approx(std::sin(2.0)));
  CHECK(y[9] == doctest::Approx(std::cos(2.0)));
  CHECK(y[10] == doctest::Approx(std::sin(2.0 / 100)));
}

TEST_CASE("a static model gives a word the same vector in every sentence") {
  Random random = fresh();
  const auto model = make_model({.kind = ModelKind::static_embedding, .width = 4}, 9, random);
  CHECK(paths_of(*model) == std::vector<std::string>{"embedding.weight"});
  Context context;
  const Tensor y = (*model)(Indices({5, 6, 7, 5}, {2, 2}), Indices({2, 2}, {2}), context);
  const auto v = y.values();
  CHECK(std::vector(v.begin(), v.begin() + 4) == std::vector(v.end() - 4, v.end()));
}

TEST_CASE(
    "a recorder keeps attention and hidden states by path, and evaluation without one keeps "
    "nothing") {
  Random random = fresh();
  const auto model = make_model(small(AttentionKind::learned), 9, random);
  Recorder recorder(*model);
  Context context({.recorder = &recorder});
  const Tensor y = (*model)(Indices({5, 6, 7}, {1, 3}), Indices({3}, {1}), context);
  CHECK(recorder.at("encoder.layers.1.attention.weights").shape() == Shape{1, 2, 3, 3});
  CHECK(recorder.at("encoder.layers.0.attention.q").shape() == Shape{1, 3, 6});
  CHECK(recorder.at("contextual").values() == y.values());
  CHECK(recorder.at("static").shape() == Shape{1, 3, 6});
  CHECK_THROWS_AS(recorder.at("encoder.layers.2.attention.weights"), ValueError);
}

TEST_CASE("dropout acts in training only") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::learned);
  options.dropout = 0.5;
  const auto model = make_model(options, 9, random);
  const auto run = [&](Context context) {
    return (*model)(Indices({5, 6, 7}, {1, 3}), Indices({3}, {1}), context).values();
  };
  CHECK(run(Context()) == run(Context()));
  CHECK(run(Context({.random = Random(1, Purpose::dropout)})) != run(Context()));
  CHECK(run(Context({.random = Random(1, Purpose::dropout)})) ==
        run(Context({.random = Random(1, Purpose::dropout)})));
}

TEST_CASE("tied parameters are listed once") {
  struct Tied final : Module {
    Parameter shared{Tensor::zeros({3, 2})};
    void visit(ModuleVisitor& visit) override { visit("input", shared)("output", shared); }
  } tied;
  CHECK(paths_of(tied) == std::vector<std::string>{"input"});
  CHECK(parameter_count(tied) == 6);
}

TEST_CASE("an embedding's padding row starts at zeros and receives no gradient") {
  Random random = fresh(), same = fresh();
  const Embedding padded(5, 3, 1, random, 2), plain(5, 3, 1, same);
  CHECK(slice(padded.weight, 0, 2, 3).values() == std::vector<double>(3, 0.0));
  for (const Index row : {0, 1, 3, 4})
    CHECK(slice(padded.weight, 0, row, row + 1).values() ==
          slice(plain.weight, 0, row, row + 1).values());
  const Gradients gradients = gradients_of(sum(padded(Indices({2, 4, 2}, {3}))));
  CHECK(sum(gradients.of(padded.weight), 1).values() == std::vector<double>{0, 0, 0, 0, 3});
  CHECK_THROWS_WITH_AS(Embedding(5, 3, 1, random, 5),
                       "[embedding] padding_idx 5 is outside the table of 5 rows", IndexError);
}

}  // namespace qkv::tests
