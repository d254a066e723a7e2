#include "tests/fuzz/families.h"

namespace qkv::fuzz {

namespace {

using Draws = std::map<std::string, OpDraw>;

const Draws::value_type& one_of(const Draws& draws, Draw& draw) {
  return *std::next(draws.begin(), draw.index_below(std::ssize(draws)));
}

Case draw_one(const Draws& draws, Draw& draw) {
  const auto& [name, add] = one_of(draws, draw);
  Builder builder(draw, name);
  add(builder);
  return builder.finish();
}

/// Ops on ops, with operands used more than once.
Case draw_graph(Draw& draw) {
  Builder builder(draw, "graph", 75);
  for (Index steps = 2 + draw.index_below(6); steps > 0; --steps)
    one_of(op_draws(), draw).second(builder);
  return builder.finish();
}

}  // namespace

Case draw_case(Draw& draw) {
  if (draw.chance(4)) {
    Builder builder(draw, "optimizer");
    draw_optimizer(builder);
    return builder.finish();
  }
  if (draw.chance(6)) return draw_one(module_draws(), draw);
  return draw.chance(25) ? draw_graph(draw) : draw_one(op_draws(), draw);
}

}  // namespace qkv::fuzz
