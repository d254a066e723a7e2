#include "optim/optimizer.h"

#include "tests/fuzz/families.h"
#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

/// The oracle's optimizer, for one element: its formulas with values of the type under test.
class Stepper {
 public:
  Stepper(const OptimizerOptions& options, const Number& value)
      : options_(options), value_(value), dtype_(value.dtype) {
    m_ = v_ = largest_ = number(0);
  }

  const Number& step(Number g, int t) {
    if (options_.kind != OptimizerKind::adamw && options_.weight_decay != 0)
      g = g + number(options_.weight_decay) * value_;
    switch (options_.kind) {
      case OptimizerKind::sgd:
        return sgd(g);
      case OptimizerKind::adam:
      case OptimizerKind::adamw:
        return adam(g, t);
      case OptimizerKind::rmsprop:
        return rmsprop(g);
      case OptimizerKind::adagrad:
        v_ = v_ + g * g;
        return move(g / (sqrt(v_) + number(options_.epsilon)));
      case OptimizerKind::muon:  // MuonStepper
        break;
    }
    return value_;
  }

 private:
  Number number(Real x) const { return constant(x, dtype_); }
  const Number& move(const Number& by) { return value_ = value_ - number(options_.lr) * by; }
  const Number& sgd(const Number& g) {
    if (options_.momentum == 0) return move(g);
    m_ = number(options_.momentum) * m_ + g;
    return move(options_.nesterov ? g + number(options_.momentum) * m_ : m_);
  }
  /// 1 - beta^(t + 1), of which the power is rounded to float64.
  Number correction(double beta, int t) const {
    Number y = number(1 - std::pow(Real{beta}, t + 1));
    y.loosen(2 * 0x1p-53L / y.format().unit);
    return y;
  }
  void average(const Number& g) {
    v_ = number(options_.beta2) * v_ + number(1 - Real{options_.beta2}) * (g * g);
  }
  const Number& adam(const Number& g, int t) {
    m_ = number(options_.beta1) * m_ + number(1 - Real{options_.beta1}) * g;
    average(g);
    if (v_.value > largest_.value || !options_.amsgrad) largest_ = v_;
    const Number size = largest_ / correction(options_.beta2, t);
    if (options_.kind == OptimizerKind::adamw)
      value_ = number(1 - Real{options_.lr} * Real{options_.weight_decay}) * value_;
    return move(m_ / correction(options_.beta1, t) / (sqrt(size) + number(options_.epsilon)));
  }
  const Number& rmsprop(const Number& g) {
    average(g);
    const Number scaled = g / (sqrt(v_) + number(options_.epsilon));
    if (options_.momentum == 0) return move(scaled);
    m_ = number(options_.momentum) * m_ + scaled;
    return move(m_);
  }

  const OptimizerOptions& options_;
  Number value_, m_, v_, largest_;
  DType dtype_;
};

using Matrix = xt::xarray<Number>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y(Matrix::shape_type{a.shape(0), b.shape(1)});
  for (std::size_t i = 0; i < y.shape(0); ++i)
    for (std::size_t j = 0; j < y.shape(1); ++j) {
      Sum sum(a.flat(0).dtype);
      for (std::size_t k = 0; k < b.shape(0); ++k) sum.add(a(i, k) * b(k, j));
      y(i, j) = sum.number();
    }
  return y;
}

/// The oracle's Muon, for one matrix.
class MuonStepper {
 public:
  MuonStepper(const OptimizerOptions& options, Matrix value)
      : options_(options), value_(std::move(value)), dtype_(value_.flat(0).dtype) {
    moment_ = Matrix(value_.shape(), number(0));
  }

  void step(const Matrix& g) {
    const Number beta = number(options_.beta1), rest = number(1 - Real{options_.beta1});
    moment_ = beta * moment_ + rest * g;
    const Number rate = number(Real{options_.lr} * 0.2L *
                               std::sqrt(static_cast<Real>(std::max(g.shape(0), g.shape(1)))));
    const Number shrinkage = number(1 - Real{options_.lr} * Real{options_.weight_decay});
    value_ = shrinkage * value_ - rate * orthogonal(beta * moment_ + rest * g);
  }
  const Matrix& value() const { return value_; }

 private:
  Number number(Real x) const { return constant(x, dtype_); }
  /// Newton-Schulz iterations from the left, whatever the shape.
  Matrix orthogonal(Matrix x) const {
    Sum squares(DType::float64);  // in which the norm is taken
    for (Number e : x) {
      e.error *= static_cast<double>(e.format().unit / format_of(DType::float64).unit);
      e.dtype = DType::float64;
      squares.add(e * e);
    }
    Number norm = sqrt(squares.number());
    if (norm.value < options_.epsilon) norm = constant(options_.epsilon, DType::float64);
    norm.error *= static_cast<double>(format_of(DType::float64).unit / format_of(dtype_).unit);
    norm.dtype = dtype_;
    norm.loosen(norm.value);
    x = x / norm;
    for (int i = 0; i < 5; ++i) {
      const Matrix gram = product(x, xt::transpose(x)), square = product(gram, gram);
      const Matrix polynomial = number(-4.775L) * gram + number(2.0315L) * square;
      x = number(3.4445L) * x + product(polynomial, x);
    }
    return x;
  }

  const OptimizerOptions& options_;
  Matrix value_, moment_;
  DType dtype_;
};

std::string code_of(const OptimizerOptions& options) {
  return fmt::format(
      "{{.kind = OptimizerKind::{}, .lr = {}, .momentum = {}, .nesterov = {}, .beta1 = {}, .beta2 "
      "= "
      "{}, .amsgrad = {}, .epsilon = {}, .weight_decay = {}}}",
      row_of(optimizer_kinds(), options.kind).name, text(options.lr), text(options.momentum),
      text(options.nesterov), text(options.beta1), text(options.beta2), text(options.amsgrad),
      text(options.epsilon), text(options.weight_decay));
}

OptimizerOptions draw_options(Builder& b) {
  OptimizerOptions options;
  const OptimizerRow& kind = optimizer_kinds()[static_cast<std::size_t>(
      b.draw.index_below(std::ssize(optimizer_kinds())))];
  options.kind = kind.value;
  options.lr = b.option({0.125, 1e-3, 0.1, 1e-2});
  if (kind.reads.momentum) options.momentum = b.option({0, 0.9, 0.5});
  if (kind.reads.nesterov && options.momentum > 0) options.nesterov = b.draw.chance(40);
  options.beta1 = b.option({0.9, 0.5, 0.99});
  options.beta2 = b.option({0.999, 0.5, 0.9, 0.98, 0.9999});
  options.amsgrad = kind.reads.amsgrad && b.draw.chance(30);
  options.epsilon = b.option({1e-8, 1e-3, 1e-6});
  options.weight_decay = b.option({0, 0.1, 0.01});
  return options;
}

}  // namespace

Tensor stepped(const Tensor& value, const Tensor& gradients, const OptimizerOptions& options) {
  Parameter parameter(value.detach());
  const std::vector<NamedParameter> named = {{"weight", &parameter}};
  const auto optimizer = make_optimizer(options);
  const Index rows = value.dim(0);
  for (Index t = 0; t < gradients.dim(0) / rows; ++t) {
    const Tensor gradient = slice(gradients.detach(), 0, t * rows, (t + 1) * rows);
    optimizer->step(named, gradients_of(sum(parameter * gradient)), options.lr, t);
  }
  return parameter.value().detach();
}

void draw_optimizer(Builder& b) {
  const OptimizerOptions options = draw_options(b);
  const Index steps = b.draw.pick<Index>({1, 2, 3, 5, 20, 50}), columns = b.positive(17);
  const Index rows = options.kind == OptimizerKind::muon ? b.positive(5) : 1;
  b.add("optimizer", {b.finite({rows, columns}), b.finite({steps * rows, columns})},
        {fmt::format("stepped($0, $1, {})", code_of(options)),
         [=](const In& x) { return stepped(x[0], x[1], options); },
         [=](const Arrays& x) {
           const auto number_of = [](const Scalar& s) { return s.number; };
           const Matrix value = xt::make_lambda_xfunction(+number_of, x[0]);
           Matrix gradients = xt::make_lambda_xfunction(+number_of, x[1]);
           const auto count = static_cast<std::size_t>(steps);
           gradients.reshape({count, value.shape(0), value.shape(1)});
           if (options.kind == OptimizerKind::muon) {
             MuonStepper stepper(options, value);
             for (std::size_t t = 0; t < count; ++t) stepper.step(xt::view(gradients, t));
             return map([](const Number& n) { return Scalar{n}; }, stepper.value());
           }
           Array y = x[0];
           for (std::size_t i = 0; i < y.size(); ++i) {
             Stepper stepper(options, value(0, i));
             for (std::size_t t = 0; t < count; ++t)
               y(0, i) = Scalar{stepper.step(gradients(t, 0, i), static_cast<int>(t))};
           }
           return y;
         }});
}

}  // namespace qkv::fuzz
