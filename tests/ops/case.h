#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/ops.h"
#include "tests/ops/draw.h"
#include "tests/ops/oracle.h"

namespace qkv::fuzz {

using In = std::vector<Tensor>;

/// A differentiable input of a case.
struct Input {
  Shape shape;
  std::vector<double> values;
};

/// One call of an op, on inputs and on results of earlier steps.
struct Step {
  std::string op;
  std::vector<std::size_t> operands;  ///< positions among the inputs and then the steps
  Shape shape;                        ///< of the result
  /// The call in C++, with $0, $1, ... for the operands. PyTorch's side of the comparison reads the
  /// same text.
  std::string code;
  std::function<Tensor(const In&)> run;
  std::function<Array(const Arrays&)> oracle;
  bool signs = false;     ///< whether the signs of zeros are defined
  bool detaches = false;  ///< whether the op takes an operand, or a part of one, for a constant
};

/// Results of a case in one type: an output and the derivatives of sum(output weights)
/// by each input.
struct Outcome {
  Tensor output;
  std::vector<Tensor> gradients;
};

/// A program of ops, or, where `run` is given, something else with inputs and an output.
struct Case {
  std::string family;
  std::vector<Input> inputs;
  std::vector<Step> steps;
  std::vector<double> weights;  ///< of the output's elements, repeated as needed

  const Step& last() const { return steps.back(); }
};

/// Element `i` of what the output is weighted with.
inline double weight_at(const Case& sample, Index i) {
  return sample.weights[static_cast<std::size_t>(i) % sample.weights.size()];
}

/// Which values the operands of a case have.
enum class Values {
  any,      ///< ordinary ones with ties, and in a quarter of the cases special ones among them
  special,  ///< infinities, NaN, zeros of both signs, subnormal, very large and very small values
  smooth,   ///< distinct ones without any of these, in small shapes, for numeric derivatives
};

/// Draws a case's inputs, shapes and values, and collects its steps.
class Builder {
 public:
  /// `reuse`: percentage of operands that are inputs or results of earlier steps, where one fits.
  Builder(Draw& draw, std::string family, std::uint32_t reuse = 0, Values values = Values::any);

  Draw& draw;

  /// A size around vector widths and tile, block and cut boundaries; `most` limits it.
  Index size(Index most = 130);
  /// A size that is not 0.
  Index positive(Index most = 130);
  Shape shape(int least_rank, int most_rank, Index most_elements = 2000);

  /// An operand of a shape.
  std::size_t like(const Shape& shape);
  /// An operand of a shape without infinities and NaN.
  std::size_t finite(const Shape& shape);
  /// An operand of any shape with a rank in this range.
  std::size_t any(int least_rank, int most_rank = 4);
  /// An operand with values in [low, high].
  std::size_t within(const Shape& shape, double low, double high);
  /// An operand of small integers, many of them equal.
  std::size_t whole(const Shape& shape, std::int32_t values);
  const Shape& shape_of(std::size_t operand) const;
  /// Integers below `limit`, from `least` on.
  Indices indices(const Shape& shape, Index limit, std::int32_t least = 0);
  /// A finite option.
  double option(std::initializer_list<double> usual);
  int axis(const Shape& shape);

  struct Call {
    std::string code;
    std::function<Tensor(const In&)> run;
    std::function<Array(const Arrays&)> oracle;
    bool signs = false;
    bool detaches = false;
  };
  std::size_t add(const std::string& op, std::vector<std::size_t> operands, Call call);

  Case finish();

 private:
  std::vector<double> values(Index count);
  std::vector<double> smooth_values(Index count);
  std::size_t input(const Shape& shape, std::vector<double> values);
  void drop_unused();

  Case case_;
  std::uint32_t reuse_, extremes_;
  bool smooth_;
};

/// Draws a call of an op and adds it: its operands, the call in C++, the formula in scalars. These
/// tables are the rows of all ops, a file for each family in tests/ops/; the numeric gradients, the
/// oracle, special values, the fuzzer and the comparison with PyTorch draw from them.
using OpDraw = std::function<void(Builder&)>;
const std::map<std::string, OpDraw>& elementwise_draws();
const std::map<std::string, OpDraw>& shape_draws();
const std::map<std::string, OpDraw>& reduction_draws();
const std::map<std::string, OpDraw>& layer_draws();
const std::map<std::string, OpDraw>& attention_draws();
const std::map<std::string, OpDraw>& recurrent_draws();
const std::map<std::string, OpDraw>& loss_draws();
/// All of them, by the op's name in core/ops.h.
const std::map<std::string, OpDraw>& op_draws();

/// C++ for a value, values, a shape, ids.
std::string text(double value);
std::string text(std::span<const double> values);
std::string text(const Shape& shape);
std::string text(const Indices& ids);
std::string text(bool value);

}  // namespace qkv::fuzz
