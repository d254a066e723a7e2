#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/ops/axes.h"
#include "core/ops/checks.h"
#include "core/ops/elementwise.h"

namespace qkv {
namespace {

using namespace detail;

void require_same_shape(std::string_view op, const Tensor& a, const Tensor& b) {
  require(a.shape() == b.shape(), "[{}] predictions {} and targets {} must have one shape", op,
          a.shape(), b.shape());
}

void require_probabilities(std::string_view op, std::string_view what, const Tensor& values,
                           std::string_view hint) {
  for (const double p : values.values())
    require<ValueError>(p >= 0 && p <= 1, "[{}] {} {} is outside [0, 1]{}", op, what, p, hint);
}

/// The weight of each class.
std::vector<double> class_weights(const Tensor& weights, Index classes) {
  if (!weights) return std::vector<double>(static_cast<std::size_t>(classes), 1.0);
  require(weights.shape() == Shape{classes},
          "[cross_entropy] class weights {} do not fit {} classes", weights.shape(), classes);
  auto values = weights.values();
  for (const double weight : values)
    require<ValueError>(weight >= 0 && std::isfinite(weight),
                        "[cross_entropy] class weights must be finite and not negative, got {}",
                        weight);
  return values;
}

/// Binary cross entropies with positive targets weighted by `pos_weight`: with p = sigmoid(x), -log
/// p is softplus(-x) and -log(1 - p) is softplus(x).
Tensor weighted_binary(const Tensor& logits, const Tensor& targets, const Tensor& pos_weight) {
  constexpr std::string_view op = "binary_cross_entropy_with_logits";
  require_same_dtype(op, logits, pos_weight);
  require(broadcast(op, logits.shape(), pos_weight.shape()) == logits.shape(),
          "[{}] pos_weight {} does not broadcast to logits {}", op, pos_weight.shape(),
          logits.shape());
  for (const double weight : pos_weight.values())
    require<ValueError>(weight >= 0 && std::isfinite(weight),
                        "[{}] pos_weight must be finite and not negative, got {}", op, weight);
  const Tensor weights = broadcast_to(pos_weight, logits.shape());
  // A weight of 0 contributes 0 even where the logarithm is infinite.
  const auto loss = []<class T>(T x, T t, T weight) {
    const T positive = weight * t, negative = 1 - t;
    return (positive == 0 ? T{0} : positive * softplus_of(-x)) +
           (negative == 0 ? T{0} : negative * softplus_of(x));
  };
  return record(
      op, map(2 * transcendental, loss, logits, targets, weights), {logits, targets},
      [=, x = logits.detach(), t = targets.detach()](const Tensor& dy, InputGradients& inputs) {
        inputs.add(0, [&] {
          return map(
              transcendental,
              [](auto d, auto v, auto to, auto weight) {
                return d * ((1 - to) / (1 + std::exp(-v)) - weight * to / (1 + std::exp(v)));
              },
              dy, x, t, weights);
        });
        inputs.add(1, [&] {
          return map(
              2 * transcendental,
              [](auto d, auto v, auto weight) {
                return d * (weight * softplus_of(-v) - softplus_of(v));
              },
              dy, x, weights);
        });
      });
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return losses;
    case Reduction::sum:
      return sum(losses);
    case Reduction::mean:
      break;
  }
  return mean(losses);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Indices& targets) {
  require_targets("cross_entropy", logits, targets);
  const Index classes = logits.dim(-1), rows = targets.size();
  const auto counted = std::ranges::count_if(targets.data(), [](auto t) { return t >= 0; });
  const double factor_of_row = counted ? 1.0 / static_cast<double>(counted) : 0.0;
  const auto target_of = [targets](Index row) {
    return targets.data()[static_cast<std::size_t>(row)];
  };

  Tensor losses = Tensor::empty({rows}, DType::float64);
  const Tensor probabilities = create(logits.shape(), logits.dtype(), [&]<class T>(T* p) {
    const T* x = elements(logits, p);
    double* loss = losses.mutable_data<double>().data();
    parallel_for(partition(rows, classes * kernels::softmax_cost), [=](Index begin, Index end) {
      for (Index row = begin; row < end; ++row) {
        const Index target = target_of(row);
        const T* logit = x + row * classes;
        T* probability = p + row * classes;
        const auto normaliser = kernels::softmax_row(logit, probability, classes, classes);
        if (normaliser.sum == 0)  // all logits are -inf
          std::fill_n(probability, classes, std::numeric_limits<T>::quiet_NaN());
        loss[row] = target < 0 ? 0.0 : normaliser.negative_log(logit[target]);
      }
    });
  });
  const Tensor loss = Tensor::scalar(sum(losses).item() * factor_of_row, logits.dtype());
  return record("cross_entropy", loss, {logits}, [=](const Tensor& dy, InputGradients& inputs) {
    // d loss / d logits = (softmax - onehot(target)) / rows that count
    inputs.add(0, create(probabilities.shape(), probabilities.dtype(), [&]<class T>(T* dx) {
                 const T* p = elements(probabilities, dx);
                 const T factor = static_cast<T>(dy.item() * factor_of_row);
                 parallel_for(partition(rows, classes), [=](Index begin, Index end) {
                   for (Index row = begin; row < end; ++row) {
                     const Index target = target_of(row), first = row * classes;
                     if (target < 0) {
                       std::fill_n(dx + first, classes, T{0});
                       continue;
                     }
                     for (Index i = first; i < first + classes; ++i) dx[i] = factor * p[i];
                     dx[first + target] -= factor;
                   }
                 });
               }));
  });
}

Tensor cross_entropy(const Tensor& logits, const Indices& targets,
                     const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing;
  require<ValueError>(smoothing >= 0 && smoothing < 1,
                      "[cross_entropy] label smoothing must be in [0, 1), got {}", smoothing);
  if (smoothing == 0 && !options.class_weights && options.ignore_index < 0 &&
      options.reduction == Reduction::mean)
    return cross_entropy(logits, targets);
  require_targets("cross_entropy", logits, targets);
  const Index classes = logits.dim(-1);
  const auto weights = class_weights(options.class_weights, classes);
  // The loss is -sum(q log softmax(logits)), q being the weighted target distribution of each row.
  std::vector<double> q(static_cast<std::size_t>(logits.size()), 0.0);
  std::vector<double> counts(static_cast<std::size_t>(targets.size()), 0.0);
  double total = 0;
  for (Index row = 0; row < targets.size(); ++row) {
    const Index target = targets.data()[static_cast<std::size_t>(row)];
    if (target < 0 || target == options.ignore_index) continue;
    counts[static_cast<std::size_t>(row)] = 1;
    double* q_row = q.data() + row * classes;
    std::ranges::transform(weights, q_row, [=](double weight) {
      return weight * smoothing / static_cast<double>(classes);
    });
    const double weight = weights[static_cast<std::size_t>(target)];
    q_row[target] += (1 - smoothing) * weight;
    total += weight;
  }
  const bool mean = options.reduction == Reduction::mean;
  const double factor = !mean ? -1 : total > 0 ? -1 / total : 0;
  for (double& each : q) each *= factor;
  const Tensor factors = Tensor::from(q, logits.shape(), logits.dtype());
  const Tensor zero = Tensor::scalar(0, logits.dtype());
  const Tensor counted =
      Tensor::from(counts, with_size(logits.shape(), logits.rank() - 1, 1), logits.dtype());
  // A weight of 0 contributes 0 even where the logarithm is infinite, and a row that does not count
  // has a gradient of 0 even where its logits are.
  const Tensor losses = factors * where(factors, log_softmax(where(counted, logits, zero)), zero);
  return options.reduction == Reduction::none ? sum(losses, -1) : sum(losses);
}

Tensor binary_cross_entropy(const Tensor& probabilities, const Tensor& targets,
                            Reduction reduction) {
  require_same_shape("binary_cross_entropy", probabilities, targets);
  require_probabilities("binary_cross_entropy", "probability", probabilities,
                        "; logits need binary_cross_entropy_with_logits");
  require_probabilities("binary_cross_entropy", "target", targets, "");
  // Logarithms are at least -100 and p (1 - p) at least 1e-12, so that the loss and the gradient of
  // p = 0 and p = 1 are finite.
  const auto log_of = []<class T>(T v) { return std::max(std::log(v), T{-100}); };
  const Tensor losses = binary(
      "binary_cross_entropy", probabilities, targets,
      [=](auto p, auto t) { return -(t * log_of(p) + (1 - t) * log_of(1 - p)); },
      []<class T>(T dy, T p, T t) {
        return dy * ((p - t) / std::max(p * (1 - p), static_cast<T>(1e-12)));
      },
      [=](auto dy, auto p, auto) { return dy * (log_of(1 - p) - log_of(p)); });
  return reduced(losses, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction, const Tensor& pos_weight) {
  require_same_shape("binary_cross_entropy_with_logits", logits, targets);
  require_probabilities("binary_cross_entropy_with_logits", "target", targets, "");
  if (pos_weight) return reduced(weighted_binary(logits, targets, pos_weight), reduction);
  const Tensor losses = binary(
      "binary_cross_entropy_with_logits", logits, targets,
      []<class T>(T x, T t) {
        // The probability of the class that the sign of the logit contradicts; an infinite logit
        // that contradicts none has the loss 0.
        const T wrong = x < 0 ? t : 1 - t;
        const T size = std::fabs(x);
        return (wrong == 0 ? T{0} : size * wrong) + std::log1p(std::exp(-size));
      },
      [](auto dy, auto x, auto t) { return dy * (1 / (1 + std::exp(-x)) - t); },
      [](auto dy, auto x, auto) { return -dy * x; });
  return reduced(losses, reduction);
}

Tensor mean_squared_error(const Tensor& predictions, const Tensor& targets, Reduction reduction) {
  require_same_shape("mean_squared_error", predictions, targets);
  const Tensor difference = predictions - targets;
  return reduced(difference * difference, reduction);
}

}  // namespace qkv
