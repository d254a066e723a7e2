#include "layers/recurrent.h"

#include <cmath>

#include "layers/embedding.h"
#include "layers/initialise.h"

namespace qkv {
namespace {

Index gates_of(CellKind cell) {
  return cell == CellKind::lstm ? 4 : cell == CellKind::gru ? 3 : 1;
}

Recurrent::Direction direction(CellKind cell, Index in, Index width, Index layer, bool reverse,
                               Random& random) {
  const Index rows = gates_of(cell) * width;
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  const auto parameter = [&](const Shape& shape) {
    return Parameter(uniform(shape, bound, random.next()));
  };
  return {fmt::format("_l{}{}", layer, reverse ? "_reverse" : ""),
          reverse,
          parameter({rows, in}),
          parameter({rows, width}),
          parameter({rows}),
          parameter({rows})};
}

/// `cell`'s op with these arguments between the weights and the direction.
template <class... Arguments>
auto run(CellKind cell, const Recurrent::Direction& d, const Tensor& x,
         const Arguments&... arguments) {
  const RecurrentWeights weights{d.weight_ih, d.weight_hh, d.bias_ih, d.bias_hh};
  switch (cell) {
    case CellKind::rnn:
      return rnn(x, weights, arguments..., d.reverse);
    case CellKind::gru:
      return gru(x, weights, arguments..., d.reverse);
    case CellKind::lstm:
      break;
  }
  return lstm(x, weights, arguments..., d.reverse);
}

/// Entry `i` of states [layers x directions, B, H].
Tensor state_at(const Tensor& all, Index i, Index count) {
  if (!all) return {};
  require(all.rank() == 3 && all.dim(0) == count,
          "[recurrent] an initial state of {} layers and directions has the shape ({}, B, H), got "
          "{}",
          count, count, all.shape());
  return reshape(slice(all, 0, i, i + 1), Shape{all.dim(1), all.dim(2)});
}

struct RecurrentModel final : Model {
  RecurrentModel(const ModelOptions& options, Index vocabulary, Random& random)
      : dropout(options.dropout),
        embedding(vocabulary, options.width, embedding_deviation, random),
        recurrent(options, random) {}

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    Tensor x = embedding(ids);
    context.record(*this, "static", x);
    x = recurrent(context.dropped(x, dropout), lengths, context);
    context.record(*this, "contextual", x);
    return x;
  }
  Tensor sentence(const Tensor& x, const Indices& lengths) const override {
    std::vector<std::int32_t> rows(lengths.data().begin(), lengths.data().end());
    for (std::int32_t& row : rows) --row;
    const Tensor last = select_rows(x, Indices(rows, lengths.shape()));
    if (recurrent.layers[0].size() == 1) return last;
    const Index width = x.dim(2);
    const Tensor first = reshape(slice(x, 1, 0, 1), {x.dim(0), width});
    return concatenate({slice(last, 1, 0, width / 2), slice(first, 1, width / 2, width)}, 1);
  }
  const Parameter& embedding_table() const override { return embedding.weight; }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding)("recurrent", recurrent);
  }

  double dropout;
  Embedding embedding;
  Recurrent recurrent;
};

}  // namespace

Recurrent::Recurrent(const ModelOptions& options, Random& random)
    : cell(options.cell), dropout(options.dropout) {
  const Index directions = options.bidirectional ? 2 : 1;
  require<ValueError>(options.width % directions == 0,
                      "[recurrent] two directions need an even width, got {}", options.width);
  for (Index i = 0; i < options.layers; ++i) {
    layers.emplace_back();
    for (Index d = 0; d < directions; ++d)
      layers.back().push_back(
          direction(cell, options.width, options.width / directions, i, d == 1, random));
  }
}

/// `states(direction, x)` are those of one direction of a layer whose input is x.
template <class States>
Tensor Recurrent::through_layers(Tensor x, Context& context, States states) const {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) x = context.dropped(x, dropout);
    std::vector<Tensor> parts;
    for (const Direction& d : layers[i]) parts.push_back(states(d, x));
    x = parts.size() == 1 ? parts[0] : concatenate(parts, 2);
  }
  return x;
}

Tensor Recurrent::operator()(Tensor x, const Indices& lengths, Context& context) const {
  return through_layers(std::move(x), context, [&](const Direction& d, const Tensor& input) {
    return run(cell, d, input, lengths);
  });
}

RecurrentOutput Recurrent::operator()(Tensor x, const Indices& lengths,
                                      const RecurrentState& initial, Context& context) const {
  const auto count = std::ssize(layers) * std::ssize(layers.at(0));
  std::vector<Tensor> h, c;
  const Tensor y =
      through_layers(std::move(x), context, [&](const Direction& d, const Tensor& input) {
        const auto i = std::ssize(h);
        const RecurrentState start{state_at(initial.h, i, count), state_at(initial.c, i, count)};
        RecurrentOutput output = run(cell, d, input, lengths, start);
        h.push_back(std::move(output.last.h));
        if (output.last.c) c.push_back(std::move(output.last.c));
        return output.states;
      });
  return {y, {stack(h, 0), c.empty() ? Tensor() : stack(c, 0)}};
}

void Recurrent::visit(ModuleVisitor& visit) {
  for (auto& layer : layers)
    for (Direction& d : layer)
      visit("weight_ih" + d.suffix, d.weight_ih)("weight_hh" + d.suffix, d.weight_hh)(
          "bias_ih" + d.suffix, d.bias_ih)("bias_hh" + d.suffix, d.bias_hh);
}

std::unique_ptr<Model> make_recurrent_model(const ModelOptions& options, Index vocabulary,
                                            Random& random) {
  return std::make_unique<RecurrentModel>(options, vocabulary, random);
}

}  // namespace qkv
