#include "layers/recurrent.h"

#include "tests/support/modules.h"

namespace qkv::tests {
namespace {

ModelOptions small(CellKind cell, bool bidirectional) {
  return {.kind = ModelKind::recurrent,
          .width = 4,
          .layers = 2,
          .cell = cell,
          .bidirectional = bidirectional};
}

const std::vector<CellKind> cells = {CellKind::rnn, CellKind::gru, CellKind::lstm};

}  // namespace

TEST_CASE("a recurrent model names and shapes its parameters as PyTorch") {
  Random random = fresh();
  const auto one_way = make_model(small(CellKind::rnn, false), 9, random);
  CHECK(paths_of(*one_way) ==
        std::vector<std::string>{
            "embedding.weight", "recurrent.weight_ih_l0", "recurrent.weight_hh_l0",
            "recurrent.bias_ih_l0", "recurrent.bias_hh_l0", "recurrent.weight_ih_l1",
            "recurrent.weight_hh_l1", "recurrent.bias_ih_l1", "recurrent.bias_hh_l1"});
  const auto both_ways = make_model(small(CellKind::lstm, true), 9, random);
  const auto shapes = shapes_of(*both_ways);
  CHECK(shapes.size() == 17);
  CHECK(shapes.at("recurrent.weight_ih_l1_reverse") == Shape{8, 4});
  CHECK(shapes.at("recurrent.weight_hh_l1_reverse") == Shape{8, 2});
  CHECK(shapes.at("recurrent.bias_hh_l0_reverse") == Shape{8});
}

TEST_CASE("two runs that hand on the state are one run, in either direction") {
  for (const CellKind cell : cells) {
    CAPTURE(static_cast<int>(cell));
    ModelOptions options = small(cell, false);
    options.layers = 1;
    auto layer = initialised<Recurrent>(options);
    Context context;
    const Tensor x = randn({2, 5, 4});
    for (const bool reverse : {false, true}) {
      CAPTURE(reverse);
      layer.layers[0][0].reverse = reverse;
      const RecurrentOutput whole = layer(x, {}, RecurrentState(), context);
      CHECK(whole.states.values() == layer(x, {}, context).values());
      const Tensor early = slice(x, 1, 0, 2), late = slice(x, 1, 2, 5);
      const RecurrentOutput first = layer(reverse ? late : early, {}, RecurrentState(), context);
      const RecurrentOutput second = layer(reverse ? early : late, {}, first.last, context);
      CHECK(concatenate(
                {reverse ? second.states : first.states, reverse ? first.states : second.states}, 1)
                .values() == whole.states.values());
      CHECK(second.last.h.values() == whole.last.h.values());
      CHECK(second.last.c.values() == whole.last.c.values());
    }
  }
}

TEST_CASE("the last state is that after the last step that is not padding") {
  const Indices lengths({3, 0, 1}, {3});
  for (const CellKind cell : cells) {
    CAPTURE(static_cast<int>(cell));
    const auto layer = initialised<Recurrent>(small(cell, true));
    Context context;
    const Tensor x = randn({3, 4, 4}), start = randn({4, 3, 2}, DType::float32, 1);
    const RecurrentState initial{start, cell == CellKind::lstm ? start * 2 : Tensor()};
    const RecurrentOutput padded = layer(x, lengths, initial, context);
    for (Index b = 0; b < 3; ++b) {
      CAPTURE(b);
      const Index length = lengths.data()[static_cast<std::size_t>(b)];
      const auto of = [&](const Tensor& state) {
        return state ? slice(state, 1, b, b + 1) : Tensor();
      };
      CHECK(slice(slice(padded.states, 0, b, b + 1), 1, length, 4).values() ==
            std::vector<double>(static_cast<std::size_t>((4 - length) * 4), 0.0));
      if (length == 0) {
        CHECK(of(padded.last.h).values() == of(initial.h).values());
        CHECK(of(padded.last.c).values() == of(initial.c).values());
        continue;
      }
      const RecurrentOutput alone = layer(slice(slice(x, 0, b, b + 1), 1, 0, length), {},
                                          {of(initial.h), of(initial.c)}, context);
      CHECK(of(padded.last.h).values() == alone.last.h.values());
      CHECK(of(padded.last.c).values() == alone.last.c.values());
    }
  }
}

TEST_CASE(
    "what stands in the padding reaches neither a recurrent network's states nor its gradients") {
  for (const CellKind cell : cells) {
    CAPTURE(static_cast<int>(cell));
    auto layer = initialised<Recurrent>(small(cell, true));
    Context context;
    const auto run = [&](double filler) {
      const Tensor x = randn({1, 3, 4});
      const Tensor padded = concatenate({x, Tensor::full({1, 2, 4}, filler)}, 1);
      const Tensor y = layer(padded, Indices({3}, {1}), context);
      const Gradients gradients = gradients_of(sum(y * y));
      std::vector<std::vector<double>> all = {y.values()};
      for (const auto& [path, parameter] : parameters(layer))
        all.push_back(gradients.of(*parameter).values());
      return all;
    };
    CHECK(run(NAN) == run(0));
  }
}

TEST_CASE("an initial state that does not fit is an error with the shape that does") {
  const auto layer = initialised<Recurrent>(small(CellKind::gru, true));
  Context context;
  const Tensor x = randn({3, 5, 4});
  CHECK_THROWS_WITH_AS(layer(x, {}, {randn({2, 3, 2})}, context),
                       "[recurrent] an initial state of 4 layers and directions has the shape (4, "
                       "B, H), got (2, 3, 2)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(layer(x, {}, {randn({4, 3, 4})}, context),
                       "[gru] an initial state of x (3, 5, 4) has the shape (3, 2), got (3, 4)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(layer(x, {}, {{}, randn({4, 3, 2})}, context),
                       "[gru] has no cell state, but one is given", ShapeError);
}

TEST_CASE("recurrent layers drop values between them, and neither before nor after") {
  const Tensor x = randn({2, 3, 4});
  for (const Index layers : {1, 2}) {
    CAPTURE(layers);
    ModelOptions options = small(CellKind::gru, true);
    options.layers = layers;
    options.dropout = 0.5;
    const auto recurrent = initialised<Recurrent>(options);
    Context evaluation, training({.random = Random(1, Purpose::dropout)});
    CHECK((recurrent(x, {}, training).values() == recurrent(x, {}, evaluation).values()) ==
          (layers == 1));
  }
}

TEST_CASE("an odd width cannot be divided between two directions") {
  Random random = fresh();
  ModelOptions options = small(CellKind::lstm, true);
  options.width = 5;
  CHECK_THROWS_WITH_AS(make_model(options, 9, random),
                       "[recurrent] two directions need an even width, got 5", ValueError);
}

TEST_CASE("recurrent weights that do not fit are an error with all shapes") {
  const Tensor x = Tensor::zeros({2, 3, 4}), w = Tensor::zeros({6, 5}), b = Tensor::zeros({6});
  CHECK_THROWS_WITH_AS(gru(x, {w, Tensor::zeros({6, 2}), b, b}, {}),
                       "[gru] input (2, 3, 4) needs weights (3H, 4), (3H, H) and biases (3H), got "
                       "(6, 5), (6, 2), (6,) and (6,)",
                       ShapeError);
  const Tensor fits = Tensor::zeros({6, 4});
  CHECK_THROWS_WITH_AS(gru(x, {fits, Tensor::zeros({6, 2}), b, b}, Indices({3, 4}, {2})),
                       "[gru] length 4 is outside [0, 3]", IndexError);
}

}  // namespace qkv::tests
