#include <fmt/ranges.h>

#include <numeric>

#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

Shape with_axis(const Shape& shape, int axis, Index size) {
  std::vector<Index> sizes(shape.begin(), shape.end());
  *((axis < 0 ? sizes.end() : sizes.begin()) + axis) = size;
  return Shape(sizes);
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
           Array y = in[0];
           y.reshape(sizes_of(to));
           return y;
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
         [=](const Arrays& in) -> Array { return xt::broadcast(in[0], sizes_of(to)); }, true});
}

void draw_permute(Builder& b) {
  const std::size_t x = b.any(0, 5);
  const Shape from = b.shape_of(x);
  std::vector<int> axes(static_cast<std::size_t>(from.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  for (std::size_t i = axes.size(); i > 1; --i)
    std::swap(axes[i - 1], axes[i - 1 - b.draw.below(static_cast<std::uint32_t>(i))]);
  b.add("permute", {x},
        {fmt::format("permute($0, std::vector<int>{{{}}})", fmt::join(axes, ", ")),
         [=](const In& in) { return permute(in[0], axes); },
         [=](const Arrays& in) -> Array { return xt::transpose(in[0], axes); }, true});
}

void draw_slice(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from);
  const Index size = from.dim(axis), begin = b.draw.index_below(size + 1),
              end = size - b.draw.index_below(size - begin + 1);
  const Index step = 1 + (b.draw.chance(40) ? b.draw.index_below(4) : 0);
  const bool from_end = begin < size && b.draw.chance(30);  // a negative index
  const Index first = from_end ? begin - size : begin;
  const Index last = end < size && b.draw.chance(30) ? end - size : end;
  b.add("slice", {x},
        {fmt::format("slice($0, {}, {}, {}, {})", axis, first, last, step),
         [=](const In& in) { return slice(in[0], axis, first, last, step); },
         [=](const Arrays& in) -> Array {
           return sliced(in[0], axis_in(in[0], axis), begin, end, step);
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
  const int axis = b.axis(shape);
  for (Index more = b.draw.index_below(3); more > 0; --more)
    parts.push_back(b.draw.chance(20) ? parts[0] : b.like(with_axis(shape, axis, b.size(33))));
  b.add("concatenate", parts,
        {fmt::format("concatenate({}, {})", operands(parts.size()), axis),
         [=](const In& in) { return concatenate(in, axis); },
         [=](const Arrays& in) { return concatenated(in, axis_in(in[0], axis)); }, true});
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
           Arrays rows;
           for (const Array& x : in)
             rows.emplace_back(xt::expand_dims(x, static_cast<std::size_t>(axis)));
           return concatenated(rows, static_cast<std::size_t>(axis));
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
             const std::size_t at = axis_in(in[0], axis);
             Arrays parts;
             for (Index begin = 0; begin < from[axis]; begin += size)
               parts.push_back(sliced(in[0], at, begin, std::min(begin + size, from[axis])));
             std::ranges::reverse(parts);
             return concatenated(parts, at);
           },
           true});
  };
}

void draw_pad(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from);
  const Index before = b.size(17) - 1 > 0 ? b.size(17) : 0, after = b.draw.index_below(5);
  const double value = b.option({0, 1.5, -0.1});
  b.add("pad", {x},
        {fmt::format("pad($0, {}, {}, {}, {})", axis, before, after, text(value)),
         [=](const In& in) { return pad(in[0], axis, before, after, value); },
         [=](const Arrays& in) {
           const Index end = before + from.dim(axis);
           Array y(sizes_of(with_axis(from, axis, end + after)),
                   Scalar{constant(value, dtype_of(in[0]))});
           place(y, axis_in(y, axis), before, in[0]);
           return y;
         },
         true});
}

void draw_gather(Builder& b) {
  const std::size_t x = b.any(1);
  const Shape from = b.shape_of(x);
  const int axis = b.axis(from);
  const Index size = from.dim(axis), count = size ? b.size(17) : 0;
  const Indices ids = b.indices(with_axis(from, axis, count), size);
  b.add("gather", {x},
        {fmt::format("gather($0, {}, {})", axis, text(ids)),
         [=](const In& in) { return gather(in[0], axis, ids); },
         [=](const Arrays& in) {
           Array y(sizes_of(ids.shape()));
           for (std::size_t i = 0; i < y.size(); ++i) {
             auto position = xt::unravel_index(i, y.shape());
             position[axis_in(y, axis)] = ids.data()[i];
             y.flat(i) = in[0].element(position.begin(), position.end());
           }
           return y;
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
           Array y(sizes_of({shape[0], shape[2]}));
           for (std::size_t n = 0; n < y.shape(0); ++n)
             xt::view(y, n) = xt::view(in[0], n, rows.data()[n]);
           return y;
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
