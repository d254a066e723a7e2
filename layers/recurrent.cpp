#include "layers/recurrent.h"

#include <array>
#include <cmath>

#include "layers/initialise.h"

namespace qkv {
namespace {

constexpr auto rows = std::to_array<CellRow>({
    {CellKind::rnn, "rnn", "tanh of input and state", 1, rnn, rnn},
    {CellKind::gru, "gru", "gated recurrent unit", 3, gru, gru},
    {CellKind::lstm, "lstm", "long short-term memory", 4, lstm, lstm},
});
static_assert(lists_every_kind(rows));

Recurrent::Direction direction(CellKind cell, Index in, Index width, Index layer, bool reverse) {
  const Index gate_rows = row_of(rows, cell).gates * width;
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  const auto parameter = [&](const Shape& shape, Role role = Role::weight) {
    return Parameter(shape, uniform(bound), role);
  };
  return {fmt::format("_l{}{}", layer, reverse ? "_reverse" : ""),
          reverse,
          parameter({gate_rows, in}),
          parameter({gate_rows, width}),
          parameter({gate_rows}, Role::bias),
          parameter({gate_rows}, Role::bias)};
}

RecurrentWeights weights_of(const Recurrent::Direction& d) {
  return {d.weight_ih, d.weight_hh, d.bias_ih, d.bias_hh};
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
  RecurrentModel(const ModelOptions& options, Index vocabulary)
      : Model(options, vocabulary), dropout(options.dropout), recurrent(options) {}

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    const Tensor x = embedded(ids, lengths, context);
    return contextual(recurrent(context.dropped(x, dropout), lengths, context), context);
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
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding)("recurrent", recurrent);
  }

  double dropout;
  Recurrent recurrent;
};

}  // namespace

std::span<const CellRow> cell_kinds() {
  return rows;
}

Recurrent::Recurrent(const ModelOptions& options) : cell(options.cell), dropout(options.dropout) {
  const Index directions = options.bidirectional ? 2 : 1;
  require<ValueError>(options.width % directions == 0,
                      "[recurrent] two directions need an even width, got {}", options.width);
  for (Index i = 0; i < options.layers; ++i) {
    layers.emplace_back();
    for (Index d = 0; d < directions; ++d)
      layers.back().push_back(
          direction(cell, options.width, options.width / directions, i, d == 1));
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
    return row_of(rows, cell).states(input, weights_of(d), lengths, d.reverse);
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
        RecurrentOutput output =
            row_of(rows, cell).states_from(input, weights_of(d), lengths, start, d.reverse);
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

std::unique_ptr<Model> make_recurrent_model(const ModelOptions& options, Index vocabulary) {
  return std::make_unique<RecurrentModel>(options, vocabulary);
}

}  // namespace qkv
