#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "layers/embedding.h"
#include "layers/recurrent.h"
#include "layers/transformer.h"
#include "tests/fuzz/families.h"
#include "tests/ops/check_rows.h"
#include "tests/support/modules.h"

namespace qkv::tests::layers_test {
namespace {

ModelOptions small(AttentionKind kind) {
  return {.width = 6, .layers = 2, .heads = 2, .attention = kind, .feed_forward = 5};
}

}  // namespace

TEST_CASE("every layer has the values and gradients of its formula") {
  fuzz::check_rows(fuzz::module_draws(), 100);
}

TEST_CASE("attention names w_q, w_k, w_v and w_o, and only those that its form learns") {
  auto learned = initialised<MultiHeadAttention>(small(AttentionKind::learned));
  CHECK(paths_of(learned) == std::vector<std::string>{"w_q.weight", "w_q.bias", "w_k.weight",
                                                      "w_k.bias", "w_v.weight", "w_v.bias",
                                                      "w_o.weight", "w_o.bias"});
  auto uniform = initialised<MultiHeadAttention>(small(AttentionKind::uniform));
  CHECK(paths_of(uniform) ==
        std::vector<std::string>{"w_v.weight", "w_v.bias", "w_o.weight", "w_o.bias"});
  auto parameter_free = initialised<MultiHeadAttention>(small(AttentionKind::parameter_free));
  CHECK(paths_of(parameter_free).empty());
}

TEST_CASE("heads that do not divide the width are an error with both values") {
  ModelOptions options = small(AttentionKind::learned);
  options.heads = 4;
  CHECK_THROWS_WITH_AS(MultiHeadAttention{options}, "[attention] 4 heads do not divide the width 6",
                       ValueError);
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

TEST_CASE("an encoder in training, with dropout, passes the gradient check") {
  ModelOptions options = small(AttentionKind::learned);
  options.dropout = 0.3;
  const AttentionInputs unmasked;
  auto encoder = initialised<Transformer>(options);
  const Tensor x = randn({2, 4, 6}, DType::float64);
  const GradientCheck check = checked(encoder, [&] {
    Context context({.random = Random(1, Purpose::dropout)});
    return encoder(x, unmasked, context);
  });
  CHECK(check.error < 1e-6);
}

TEST_CASE("sinusoidal positions follow the formula") {
  const auto y = sinusoidal_positions(0, 3, 4, DType::float64).values();
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

TEST_CASE("tied parameters are listed once") {
  struct Tied final : Module {
    Parameter shared{Tensor::zeros({3, 2})};
    void visit(ModuleVisitor& visit) override { visit("input", shared)("output", shared); }
  } tied;
  CHECK(paths_of(tied) == std::vector<std::string>{"input"});
  CHECK(parameter_count(tied) == 6);
}

TEST_CASE("every parameter has the role that its layer gives it") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::learned);
  options.kind = ModelKind::encoder_decoder;
  options.position = PositionKind::learned;
  const auto model = make_model(options, 7, random);
  const std::map<std::string, Role> expected = {
      {"embedding.weight", Role::embedding},
      {"positions.weight", Role::position},
      {"encoder.layers.0.norm_1.weight", Role::norm},
      {"encoder.layers.0.norm_1.bias", Role::bias},
      {"encoder.layers.1.attention.w_q.weight", Role::query},
      {"encoder.layers.1.attention.w_q.bias", Role::bias},
      {"encoder.layers.1.attention.w_k.weight", Role::key},
      {"encoder.layers.1.attention.w_v.weight", Role::value},
      {"encoder.layers.1.attention.w_o.weight", Role::attention_output},
      {"decoder.layers.0.cross_attention.w_q.weight", Role::query},
      {"decoder.layers.0.feed_forward.w_1.weight", Role::feed_forward_input},
      {"decoder.layers.0.feed_forward.w_2.weight", Role::feed_forward_output}};
  std::size_t found = 0;
  for (const auto& [path, parameter] : parameters(*model)) {
    const auto row = expected.find(path);
    if (row == expected.end()) continue;
    CAPTURE(path);
    CHECK(parameter->role() == row->second);
    ++found;
  }
  CHECK(found == expected.size());
}

TEST_CASE("a copy of a frozen parameter is frozen and has its role") {
  Parameter table(Tensor::zeros({2, 3}), Role::embedding);
  CHECK_FALSE(Parameter(table).frozen());
  table.freeze();
  const Parameter copy = table;
  CHECK(copy.frozen());
  CHECK(copy.role() == Role::embedding);
  Parameter assigned(Tensor::zeros({1}));
  assigned = table;
  CHECK(assigned.frozen());
}

TEST_CASE("modules of a type are found with their paths, in order") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::learned);
  options.kind = ModelKind::encoder_decoder;
  const auto model = make_model(options, 7, random);
  std::vector<std::string> paths;
  for (const auto& [path, attention] : modules<MultiHeadAttention>(*model))
    if (attention->cross) paths.push_back(path);
  CHECK(paths == std::vector<std::string>{"decoder.layers.0.cross_attention",
                                          "decoder.layers.1.cross_attention"});
}

TEST_CASE("records say which layer computed them and by which formula") {
  Random random = fresh();
  const auto model = make_model(small(AttentionKind::learned), 9, random);
  Recorder recorder(*model);
  Context context({.recorder = &recorder});
  (*model)(Indices({5, 6, 7}, {1, 3}), Indices({3}, {1}), context);
  const auto record = [&](const std::string& path) {
    return *std::ranges::find(recorder.all(), path, &Recorder::Record::path);
  };
  CHECK_FALSE(record("static").layer.has_value());
  const Recorder::Record q = record("encoder.layers.1.attention.q");
  CHECK(q.module == "encoder.layers.1.attention");
  CHECK(q.name == "q");
  CHECK(q.layer->path == "encoder.layers.1");
  CHECK(q.layer->number == 1);
  CHECK(q.formula.symbol == "q_i");
  CHECK_FALSE(q.is_output_of_layer());
  const Recorder::Record output = record("encoder.layers.0.output");
  CHECK(output.is_output_of_layer());
  CHECK(output.formula.formula == "x'_i + f_i");
  CHECK_FALSE(record("encoder.output").layer.has_value());
}

TEST_CASE("formulas follow the form of the block") {
  const auto formula = [](const ModelOptions& options, const std::string& path) {
    Random random = fresh();
    const auto model = make_model(options, 9, random);
    Recorder recorder(*model);
    Context context({.recorder = &recorder});
    (*model)(Indices({5, 6, 7}, {1, 3}), {}, context);
    const Formula f =
        std::ranges::find(recorder.all(), "encoder.layers.0." + path, &Recorder::Record::path)
            ->formula;
    return f.symbol + " = " + f.formula;
  };
  ModelOptions options = small(AttentionKind::learned);
  CHECK(formula(options, "norm_2.output") ==
        "h'_i = (x'_i - mean(x'_i)) / sqrt(var(x'_i) + 1e-5) * g + b");
  CHECK(formula(options, "feed_forward.output") == "f_i = W_2 gelu(W_1 h'_i + b_1) + b_2");
  options.norm = NormKind::post;
  CHECK(formula(options, "norm_1.output") == "x_i = norm(x_i + o_i)");
  CHECK(formula(options, "norm_2.output") == "x_i = norm(x_i + f_i)");
  CHECK(formula(options, "feed_forward.output") == "f_i = W_2 gelu(W_1 x_i + b_1) + b_2");
  options.activation = ActivationKind::relu_squared;
  CHECK(formula(options, "feed_forward.output") == "f_i = W_2 relu(W_1 x_i + b_1)^2 + b_2");
  CHECK(formula(small(AttentionKind::parameter_free), "attention.output") == "o_i = z_i");
  CHECK(formula(small(AttentionKind::parameter_free), "output") == "x_i = o_i");
}

TEST_CASE("positions in attention can rotate queries and keys and bias the scores") {
  // ALiBi (Press et al. 2022): -|distance| times a slope a head.
  struct Alibi final : AttentionPositions {
    Tensor score_bias(Index heads, Index first, Index queries, Index keys,
                      DType dtype) const override {
      std::vector<double> values;
      for (Index h = 0; h < heads; ++h)
        for (Index q = first; q < first + queries; ++q)
          for (Index k = 0; k < keys; ++k)
            values.push_back(-static_cast<double>(std::abs(q - k)) / static_cast<double>(h + 1));
      return Tensor::from(values, {1, heads, queries, keys}, dtype);
    }
  };
  auto attend = initialised<MultiHeadAttention>(small(AttentionKind::learned));
  const Tensor x = randn({2, 4, 6}), given = randn({2, 2, 4, 4});
  const Tensor slopes = Alibi().score_bias(2, 0, 4, 4, x.dtype());
  Context context;
  const auto plain = attend(x, x, {}, context).values();
  const auto expected = attend(x, x, {.key_lengths = {}, .bias = slopes}, context).values();
  const auto with_both =
      attend(x, x, {.key_lengths = {}, .bias = given + slopes}, context).values();
  attend.positions = std::make_unique<Alibi>();
  CHECK(attend(x, x, {}, context).values() == expected);
  CHECK(attend(x, x, {}, context).values() != plain);
  CHECK(attend(x, x, {.key_lengths = {}, .bias = given}, context).values() == with_both);
}

TEST_CASE("relative positions bias scores by the distance of the key, from max_distance on alike") {
  ModelOptions options = small(AttentionKind::learned);
  options.position = PositionKind::relative;
  options.max_distance = 2;
  const auto positions = make_attention_positions(options);
  parameters(*positions)
      .front()
      .parameter->assign(Tensor::from({0, 10, 1, 11, 2, 12, 3, 13, 4, 14}, {5, 2}));
  CHECK(positions->score_bias(2, 2, 2, 4, DType::float32).values() ==
        std::vector<double>{0, 1, 2, 3, 0, 0, 1, 2, 10, 11, 12, 13, 10, 10, 11, 12});
  options.attention = AttentionKind::uniform;
  CHECK(make_attention_positions(options) == nullptr);
}

TEST_CASE("a block without norms adds its sub-layers to its input") {
  ModelOptions options = small(AttentionKind::learned);
  options.norm = NormKind::none;
  const auto block = initialised<TransformerBlock>(options);
  const Tensor x = randn({2, 4, 6});
  Context context;
  const Tensor attended = x + block.attention(x, x, {}, context);
  CHECK(block(x, {}, context).values() == (attended + (*block.feed_forward)(attended)).values());
}

TEST_CASE("a sequence longer than the learned positions is an error in the caller's terms") {
  Random random = fresh();
  ModelOptions options = small(AttentionKind::learned);
  options.position = PositionKind::learned;
  options.max_length = 2;
  const auto model = make_model(options, 9, random);
  Context context;
  CHECK_THROWS_WITH_AS(
      (*model)(Indices({5, 6, 7}, {1, 3}), {}, context),
      "[positions] a sequence of 3 tokens is longer than the table of learned positions, "
      "max_length = 2; cut the sequence or raise max_length",
      ValueError);
}

TEST_CASE("ids and lengths of the wrong shape are an error in the caller's terms") {
  for (const ModelKind kind : {ModelKind::encoder, ModelKind::recurrent, ModelKind::convolution,
                               ModelKind::fixed_length, ModelKind::static_embedding}) {
    CAPTURE(static_cast<int>(kind));
    Random random = fresh();
    ModelOptions options = small(AttentionKind::learned);
    options.kind = kind;
    const auto model = make_model(options, 9, random);
    Context context;
    CHECK_THROWS_WITH_AS((*model)(Indices({5, 6, 7}, {3}), {}, context),
                         "[model] token ids have the shape [batch, time], got (3,); a single "
                         "sequence of T ids is (1, T)",
                         ShapeError);
    CHECK_THROWS_WITH_AS((*model)(Indices({5, 6, 7}, {1, 3}), Indices({3, 3}, {2}), context),
                         "[model] ids (1, 3) need one length for each sequence, (1,), got (2,)",
                         ShapeError);
  }
}

// A table without a row for each kind, or with rows in another order, does not compile.
enum class Fruit { apple, pear };
constexpr qkv::Kind<Fruit> apple{Fruit::apple, "apple", "red"}, pear{Fruit::pear, "pear", "green"};
static_assert(lists_every_kind(std::array{apple, pear}));
static_assert(!lists_every_kind(std::array{apple}));
static_assert(!lists_every_kind(std::array{pear, apple}));

TEST_CASE("kinds have names and helps of their own") {
  const auto check = [](const auto& rows) {
    std::set<std::string_view> names;
    for (const auto& row : rows) {
      CHECK(names.insert(row.name).second);
      CHECK_FALSE(row.help.empty());
    }
  };
  check(model_kinds());
  check(position_kinds());
  check(cell_kinds());
  check(attention_kinds);
  check(embedding_kinds);
  check(norm_kinds);
}

TEST_CASE("an embedding's padding row starts at zeros and receives no gradient") {
  const auto padded = initialised<Embedding>(5, 3, 1, 2), plain = initialised<Embedding>(5, 3, 1);
  CHECK(slice(padded.weight, 0, 2, 3).values() == std::vector<double>(3, 0.0));
  for (const Index row : {0, 1, 3, 4})
    CHECK(slice(padded.weight, 0, row, row + 1).values() ==
          slice(plain.weight, 0, row, row + 1).values());
  const Gradients gradients = gradients_of(sum(padded(Indices({2, 4, 2}, {3}))));
  CHECK(sum(gradients.of(padded.weight), 1).values() == std::vector<double>{0, 0, 0, 0, 3});
  CHECK_THROWS_WITH_AS(Embedding(5, 3, 1, 5),
                       "[embedding] padding_idx 5 is outside the table of 5 rows", IndexError);
}

}  // namespace qkv::tests::layers_test
