#include <numeric>

#include "core/ops/axes.h"
#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

/// The array of `shape` whose element at `position` is x's at from(position), or a constant where
/// that is negative.
template <class From>
Array taken(const Array& x, const Shape& shape, From from, double rest = 0) {
  Array y{shape, {}};
  std::vector<Index> position(static_cast<std::size_t>(shape.rank()));
  for (Index i = 0; i < shape.size(); ++i) {
    Index left = i;
    for (int axis = shape.rank(); axis-- > 0; left /= shape[axis])
      position[static_cast<std::size_t>(axis)] = left % shape[axis];
    const Index at = from(position);
    y.scalars.push_back(at >= 0 ? x[at] : Scalar{constant(rest, dtype_in({x}))});
  }
  return y;
}

Index position_in(const Shape& shape, const std::vector<Index>& position) {
  Index at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    at = at * shape[axis] + position[static_cast<std::size_t>(axis)];
  return at;
}

Shape with_axis(const Shape& shape, int axis, Index size) {
  std::vector<Index> sizes(shape.begin(), shape.end());
  sizes[static_cast<std::size_t>(axis)] = size;
  return Shape(sizes);
}

int normal(int axis, const Shape& shape) {
  return axis < 0 ? axis + shape.rank() : axis;
}

/// x from `begin` on along an axis, in the size of `shape`; `rest` outside of x.
Array window(const Array& x, const Shape& shape, int axis, Index begin, double rest = 0) {
  return taken(
      x, shape,
      [&](std::vector<Index> position) -> Index {
        Index& at = position[static_cast<std::size_t>(axis)];
        at += begin;
        return at < 0 || at >= x.shape[axis] ? -1 : position_in(x.shape, position);
      },
      rest);
}

Array joined(const Arrays& parts, int axis) {
  Index size = 0;
  for (const Array& part : parts) size += part.shape[axis];
  Array y = taken(parts[0], with_axis(parts[0].shape, axis, size),
                  [](const auto&) -> Index { return -1; });
  Index begin = 0;
  for (const Array& part : parts) {
    const detail::AxisView to = detail::axis_view(y.shape, axis);
    const detail::AxisView from = detail::axis_view(part.shape, axis);
    for (Index i = 0; i < part.size(); ++i) {
      const Index outer = i / std::max<Index>(1, from.length * from.inner),
                  rest = i % std::max<Index>(1, from.length * from.inner);
      y[(outer * to.length + begin) * to.inner + rest] = part[i];
    }
    begin += part.shape[axis];
  }
  return y;
}

void draw_reshape(Builder& b) {
  const std::size_t x = b.any(0);
  const Shape from = b.shape_of(x);
  std::vector<Index> sizes(from.begin(), from.end());
  const bool inferred = from.size() > 0 && from.rank() > 0 && b.draw.chance(30);
  if (from.rank() > 1 && b.draw.chance(60)) {
    const Index last = sizes.back();
    sizes.pop_back();
    sizes.back() *= last;
  }
  if (sizes.size() < 5 && b.draw.chance(40)) sizes.insert(sizes.begin(), 1);
  if (b.draw.chance(40)) std::ranges::reverse(sizes);
  const Shape to(sizes);
  const bool infers = inferred && sizes.size() == 2;
  b.add("reshape", {x},
        {infers ? fmt::format("reshape($0, {{{}, -1}})", sizes[0])
                : fmt::format("reshape($0, Shape{})", text(to)),
         [=](const In& in) {
           return infers ? reshape(in[0], {to[0], -1}) : reshape(in[0], to);
         },
         [=](const Arrays& in) {
           return Array{to, in[0].scalars};
         },
         true});
}

void draw_expand(Builder& b) {
  const std::size_t x = b.any(0, 3);
  std::vector<Index> sizes(b.shape_of(x).begin(), b.shape_of(x).end());
  for (Index& size : sizes)
    if (size == 1 && b.draw.chance(60)) size = b.size(9);
  if (b.draw.chance(50)) sizes.insert(sizes.begin(), b.size(5));
  const Shape to(sizes);
  const bool keeps = to.rank() == 2 && b.draw.chance(40);
  const Shape from = b.shape_of(x);
  for (int axis = 2 - from.rank(); keeps && axis < 2; ++axis)
    if (from[axis - 2 + from.rank()] == to[axis] && b.draw.chance(60))
      sizes[static_cast<std::size_t>(axis)] = -1;
  b.add("expand", {x},
        {keeps ? fmt::format("expand($0, {{{}, {}}})", sizes[0], sizes[1])
               : fmt::format("expand($0, Shape{})", text(to)),
         [=](const In& in) {
           return keeps ? expand(in[0], {sizes[0], sizes[1]}) : expand(in[0], to);
         },
         [=](const Arrays& in) { return broadcast_to(in[0], to); }, true});
}

void draw_permute(Builder& b) {
  const std::size_t x = b.any(0, 5);
  const Shape from = b.shape_of(x);
  std::vector<int> axes(static_cast<std::size_t>(from.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  for (std::size_t i = axes.size(); i > 1; --i)
    std::swap(axes[i - 1], axes[i - 1 - b.draw.below(static_cast<std::uint32_t>(i))]);
  std::vector<Index> sizes;
  for (const int axis : axes) sizes.push_back(from[axis]);
  const Shape to(sizes);
  b.add("permute", {x},
        {fmt::format("permute($0, std::vector<int>{{{}}})", fmt::join(axes, ", ")),
         [=](const In& in) { return permute(in[0], axes); },
         [=](const Arrays& in) {
           return taken(in[0], to, [&](const std::vector<Index>& position) {
             std::vector<Index> original(position.size());
             for (std::size_t i = 0; i < axes.size(); ++i)
               original[static_cast<std::size_t>(axes[i])] = position[i];
             return position_in(in[0].shape, original);
           });
         },
         true});
}

void draw_slice(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from), at = normal(axis, from);
  const Index begin = b.draw.index_below(from[at] + 1),
              end = from[at] - b.draw.index_below(from[at] - begin + 1);
  const Index step = 1 + (b.draw.chance(40) ? b.draw.index_below(4) : 0);
  const bool from_end = begin < from[at] && b.draw.chance(30);  // a negative index
  const Index first = from_end ? begin - from[at] : begin;
  const Index last = end < from[at] && b.draw.chance(30) ? end - from[at] : end;
  b.add("slice", {x},
        {fmt::format("slice($0, {}, {}, {}, {})", axis, first, last, step),
         [=](const In& in) { return slice(in[0], axis, first, last, step); },
         [=](const Arrays& in) {
           return taken(in[0], with_axis(from, at, (end - begin + step - 1) / step),
                        [&](std::vector<Index> position) {
                          Index& i = position[static_cast<std::size_t>(at)];
                          i = begin + i * step;
                          return position_in(from, position);
                        });
         },
         true});
}

std::string operands(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("${}", i));
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

void draw_concatenate(Builder& b) {
  std::vector<std::size_t> parts = {b.any(1)};
  const Shape shape = b.shape_of(parts[0]);
  const int axis = b.axis(shape), at = normal(axis, shape);
  for (Index more = b.draw.index_below(3); more > 0; --more)
    parts.push_back(b.draw.chance(20) ? parts[0] : b.like(with_axis(shape, at, b.size(33))));
  b.add("concatenate", parts,
        {fmt::format("concatenate({}, {})", operands(parts.size()), axis),
         [=](const In& in) { return concatenate(in, axis); },
         [=](const Arrays& in) { return joined(in, at); }, true});
}

void draw_stack(Builder& b) {
  std::vector<std::size_t> parts = {b.any(0)};
  const Shape shape = b.shape_of(parts[0]);
  for (Index more = b.draw.index_below(3); more > 0; --more) parts.push_back(b.like(shape));
  const int axis = static_cast<int>(b.draw.index_below(shape.rank() + 1));
  b.add("stack", parts,
        {fmt::format("stack({}, {})", operands(parts.size()), axis),
         [=](const In& in) { return stack(in, axis); },
         [=](const Arrays& in) {
           Arrays rows = in;
           std::vector<Index> sizes(shape.begin(), shape.end());
           sizes.insert(sizes.begin() + axis, 1);
           for (Array& x : rows) x.shape = Shape(sizes);
           return joined(rows, axis);
         },
         true});
}

using Split = std::vector<Tensor> (*)(const Tensor&, int, Index);

/// The slices of a split, joined in reverse.
OpDraw splitting(const std::string& name, Split run, bool by_size) {
  return [=](Builder& b) {
    const std::size_t x = b.like(b.shape(1, 3, 500));
    const Shape from = b.shape_of(x);
    const int axis = static_cast<int>(b.draw.index_below(from.rank()));
    const Index argument = 1 + b.draw.index_below(5);
    const Index size = by_size ? argument : (from[axis] + argument - 1) / argument;
    if (from[axis] == 0) return;
    b.add(name, {x},
          {fmt::format("reversed({}($0, {}, {}), {})", name, axis, argument, axis),
           [=](const In& in) {
             std::vector<Tensor> parts = run(in[0], axis, argument);
             std::ranges::reverse(parts);
             return concatenate(parts, axis);
           },
           [=](const Arrays& in) {
             Arrays parts;
             for (Index begin = 0; begin < from[axis]; begin += size)
               parts.push_back(window(
                   in[0], with_axis(from, axis, std::min(size, from[axis] - begin)), axis, begin));
             std::ranges::reverse(parts);
             return joined(parts, axis);
           },
           true});
  };
}

void draw_pad(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from), at = normal(axis, from);
  const Index before = b.size(17) - 1 > 0 ? b.size(17) : 0, after = b.draw.index_below(5);
  const double value = b.option({0, 1.5, -0.1});
  b.add("pad", {x},
        {fmt::format("pad($0, {}, {}, {}, {})", axis, before, after, text(value)),
         [=](const In& in) { return pad(in[0], axis, before, after, value); },
         [=](const Arrays& in) {
           return window(in[0], with_axis(in[0].shape, at, in[0].shape[at] + before + after), at,
                         -before, value);
         },
         true});
}

void draw_gather(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from), at = normal(axis, from);
  const Index count = from[at] ? b.size(17) : 0;
  const Indices ids = b.indices(with_axis(from, at, count), from[at]);
  b.add("gather", {x},
        {fmt::format("gather($0, {}, {})", axis, text(ids)),
         [=](const In& in) { return gather(in[0], axis, ids); },
         [=](const Arrays& in) {
           return taken(in[0], ids.shape(), [&](std::vector<Index> position) {
             position[static_cast<std::size_t>(at)] =
                 ids.data()[static_cast<std::size_t>(position_in(ids.shape(), position))];
             return position_in(in[0].shape, position);
           });
         },
         true});
}

void draw_select_rows(Builder& b) {
  const Shape shape{b.size(9), b.positive(9), b.size(33)};
  const std::size_t x = b.like(shape);
  const Indices rows = b.indices({shape[0]}, shape[1]);
  b.add("select_rows", {x},
        {fmt::format("select_rows($0, {})", text(rows)),
         [=](const In& in) { return select_rows(in[0], rows); },
         [=](const Arrays& in) {
           return taken(in[0], {shape[0], shape[2]}, [&](const std::vector<Index>& position) {
             const Index row = rows.data()[static_cast<std::size_t>(position[0])];
             return position_in(shape, {position[0], row, position[1]});
           });
         },
         true});
}

}  // namespace

const std::map<std::string, OpDraw>& shape_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"reshape", draw_reshape},
      {"expand", draw_expand},
      {"permute", draw_permute},
      {"slice", draw_slice},
      {"concatenate", draw_concatenate},
      {"stack", draw_stack},
      {"split", splitting("split", qkv::split, false)},
      {"split_by_size", splitting("split_by_size", qkv::split_by_size, true)},
      {"pad", draw_pad},
      {"gather", draw_gather},
      {"select_rows", draw_select_rows},
  };
  return draws;
}

}  // namespace qkv::fuzz
