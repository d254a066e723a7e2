#include <fmt/ranges.h>

#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "tests/ops/case.h"

namespace qkv::fuzz {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

std::string text(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  if (value == 0 && std::signbit(value)) return "-0.0";
  return fmt::format("{}", value);
}

std::string text(std::span<const double> values) {
  std::vector<std::string> parts;
  for (const double value : values) parts.push_back(text(value));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string text(const Shape& shape) {
  return fmt::format("{{{}}}", fmt::join(shape.sizes(), ", "));
}

std::string text(const Indices& ids) {
  return fmt::format("Indices({{{}}}, {})", fmt::join(ids.data(), ", "), text(ids.shape()));
}

std::string text(bool value) {
  return value ? "true" : "false";
}

Builder::Builder(Draw& draw, std::string family, std::uint32_t reuse, Values values)
    : draw(draw), reuse_(reuse), extremes_(0), smooth_(values == Values::smooth) {
  case_.family = std::move(family);
  const bool special = values == Values::special || draw.below(4) == 3;
  if (special && !smooth_) extremes_ = 1 + draw.below(3);
}

Index Builder::size(Index most) {
  if (smooth_) most = std::min<Index>(most, draw.chance(15) ? 21 : 6);
  // From the simplest on; later rows are rarer.
  switch (draw.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
      return std::min(most, draw.pick<Index>({1, 2, 3, 4, 5}));
    case 7:
      return 0;
    case 8:
    case 9:
    case 10:
    case 11:
      return std::min(most, draw.pick<Index>({6, 7, 8, 9, 11, 13}));
    case 12:
    case 13:
      return std::min(most, draw.pick<Index>({14, 15, 16, 17, 19, 23}));
    case 14:
      return std::min(most, draw.pick<Index>({29, 31, 32, 33, 37}));
    case 15:
      return std::min(most, draw.pick<Index>({47, 48, 49, 63, 64, 65, 97, 127, 128, 129}));
  }
  return 1;
}

Index Builder::positive(Index most) {
  return std::max<Index>(1, size(most));
}

Shape Builder::shape(int least_rank, int most_rank, Index most_elements) {
  const auto rank = least_rank + static_cast<int>(draw.index_below(most_rank - least_rank + 1));
  std::vector<Index> sizes(static_cast<std::size_t>(rank), 1);
  Index elements = 1;
  if (smooth_) most_elements = std::min<Index>(most_elements, 60);
  for (std::size_t axis = sizes.size(); axis-- > 0;) {  // the last axis may be the longest
    sizes[axis] = size(std::max<Index>(1, most_elements / elements));
    elements = std::max<Index>(1, elements * sizes[axis]);
  }
  return Shape(sizes);
}

/// Exact in both types.
std::vector<double> Builder::smooth_values(Index count) {
  const auto [low, high] = draw.pick<std::pair<double, double>>({{-2, 2}, {0.75, 2}, {-1, 1}});
  const Random random(draw.below(1U << 16), Purpose::testing);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(low + (high - low) * random.uniform(i));
  return values;
}

std::vector<double> Builder::values(Index count) {
  if (smooth_) return smooth_values(count);
  // The simplest kinds first. All values of ordinary kinds are exact in both types.
  const std::uint32_t kind = extremes_ == 0       ? draw.below(5)
                             : draw.below(5) >= 3 ? 5 + draw.below(9)
                                                  : draw.below(5);
  const Random random(draw.below(1U << 16), Purpose::testing, kind);
  const double specials[] = {0,     -0.0,  inf,    -inf,  NAN,    1e-40, -3e-45, 1e38,
                             -1e38, 1e-38, 3.4e38, 1e300, 5e-324, -1e4,  1e-30,  88.5};
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = random.bits(2 * i), more = random.bits(2 * i + 1);
    const double small = (more >> 8) * 0x1p-22 - 2, whole = bits % 5 - 2.0;  // in [-2, 2)
    const auto single = [](double v) { return static_cast<double>(static_cast<float>(v)); };
    switch (kind) {
      case 0:
        values[i] = whole;
        break;  // with ties
      case 1:
        values[i] = 1;
        break;
      case 2:
      case 3:
        values[i] = small;
        break;
      case 4:
        values[i] = whole * small * 4;
        break;
      case 5:
        values[i] = bits % 4 ? small : specials[more % std::size(specials)];
        break;
      case 6:
        values[i] = single(1e4 + 2 * small);
        break;
      case 7:
        values[i] = single(small * 1e19);
        break;
      case 8:
        values[i] = single(small * 1e-21);
        break;
      case 9:
        values[i] = bits % 8 ? small : specials[more % 2];
        break;  // zeros of both signs
      case 10:
        values[i] = single(small * 1e-39);
        break;
      case 11:
        values[i] = bits % 16 ? small : NAN;
        break;
      case 12:  // short rows of one value
        values[i] = random.bits(i / 8) % 2 ? small
                    : random.bits(i / 8) % 4
                        ? specials[random.bits(i / 8) / 4 % std::size(specials)]
                        : -inf;
        break;
      case 13:  // infinities and NaN beside each other
        values[i] = bits % 2 ? small : specials[2 + more % 3];
        break;
    }
  }
  return values;
}

std::size_t Builder::input(const Shape& shape, std::vector<double> values) {
  case_.inputs.push_back({shape, std::move(values)});
  return case_.inputs.size() - 1;
}

namespace {

/// Steps are numbered from here on until all inputs are known, and then after the inputs.
constexpr std::size_t first_step = 1000;

}  // namespace

const Shape& Builder::shape_of(std::size_t operand) const {
  return operand >= first_step ? case_.steps[operand - first_step].shape
                               : case_.inputs[operand].shape;
}

std::size_t Builder::like(const Shape& shape) {
  if (reuse_ && draw.chance(reuse_)) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i)
      if (case_.inputs[i].shape == shape) fitting.push_back(i);
    for (std::size_t i = 0; i < case_.steps.size(); ++i)
      if (case_.steps[i].shape == shape) fitting.push_back(first_step + i);
    if (!fitting.empty())
      return fitting[static_cast<std::size_t>(draw.index_below(std::ssize(fitting)))];
  }
  return input(shape, values(shape.size()));
}

std::size_t Builder::finite(const Shape& shape) {
  const std::uint32_t extremes = std::exchange(extremes_, 0);
  const std::size_t x = input(shape, values(shape.size()));
  extremes_ = extremes;
  return x;
}

std::size_t Builder::any(int least_rank, int most_rank) {
  if (reuse_ && draw.chance(reuse_)) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < case_.steps.size(); ++i) {
      const int rank = case_.steps[i].shape.rank();
      if (rank >= least_rank && rank <= most_rank) fitting.push_back(first_step + i);
    }
    if (!fitting.empty())  // mostly the last
      return fitting[fitting.size() - 1 -
                     static_cast<std::size_t>(
                         draw.index_below(std::min<Index>(3, std::ssize(fitting))))];
  }
  return like(shape(least_rank, most_rank));
}

std::size_t Builder::within(const Shape& shape, double low, double high) {
  const Random random(draw.below(1U << 16), Purpose::testing);
  const bool ends = !smooth_ && draw.chance(30);
  if (smooth_) {  // numeric derivatives look beyond the elements
    const double margin = 0.1 * (high - low);
    low += margin;
    high -= margin;
  }
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = random.bits(i);
    values[i] = ends && bits % 4 == 0   ? low
                : ends && bits % 4 == 1 ? high
                                        : static_cast<float>(low + (high - low) * (bits * 0x1p-32));
  }
  return input(shape, std::move(values));
}

std::size_t Builder::whole(const Shape& shape, std::int32_t values) {
  const Indices ids = indices(shape, values);
  return input(shape, {ids.data().begin(), ids.data().end()});
}

Indices Builder::indices(const Shape& shape, Index limit, std::int32_t least) {
  const Random random(draw.below(1U << 16), Purpose::testing);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] =
        least + static_cast<std::int32_t>(random.uniform(i) * static_cast<double>(limit - least));
  return Indices(ids, shape);
}

double Builder::option(std::initializer_list<double> usual) {
  return draw.pick(usual);
}

int Builder::axis(const Shape& shape) {
  const int axis = static_cast<int>(draw.index_below(shape.rank()));
  return draw.chance(30) ? axis - shape.rank() : axis;
}

std::size_t Builder::add(const std::string& op, std::vector<std::size_t> operands, Call call) {
  Shape shape;
  if (reuse_) {  // of the last step of a case nobody asks
    Arrays zeros;
    for (const std::size_t operand : operands)
      zeros.emplace_back(sizes_of(shape_of(operand)), Scalar());
    shape = fuzz::shape_of(call.oracle(zeros));
    if (shape.size() > 10'000) return operands.front();  // would take the oracle seconds
  }
  case_.steps.push_back({op, std::move(operands), shape, std::move(call.code), std::move(call.run),
                         std::move(call.oracle), call.signs, call.detaches});
  return first_step + case_.steps.size() - 1;
}

/// Leaves the last step, and what it depends on.
void Builder::drop_unused() {
  std::vector<bool> inputs(case_.inputs.size()), steps(case_.steps.size());
  if (!steps.empty()) steps.back() = true;
  for (std::size_t i = steps.size(); i-- > 0;)
    if (steps[i])
      for (const std::size_t operand : case_.steps[i].operands)
        (operand >= first_step ? steps[operand - first_step] : inputs[operand]) = true;
  std::map<std::size_t, std::size_t> moved;
  const auto keep = [&](auto& from, const std::vector<bool>& used, std::size_t first) {
    std::remove_reference_t<decltype(from)> kept;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!used[i]) continue;
      moved[first + i] = first + kept.size();
      kept.push_back(std::move(from[i]));
    }
    from = std::move(kept);
  };
  keep(case_.inputs, inputs, 0);
  keep(case_.steps, steps, first_step);
  for (Step& step : case_.steps)
    for (std::size_t& operand : step.operands) operand = moved.at(operand);
}

Case Builder::finish() {
  drop_unused();
  for (Step& step : case_.steps)
    for (std::size_t& operand : step.operands)
      if (operand >= first_step) operand = operand - first_step + case_.inputs.size();
  case_.weights = draw.chance(50) ? std::vector<double>{1, -0.5, 0.75, 2, -1.25, 0.375, 1.5}
                                  : std::vector<double>{1};
  return std::move(case_);
}

}  // namespace qkv::fuzz
