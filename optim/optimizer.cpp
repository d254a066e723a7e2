#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/parallel.h"

namespace qkv {
namespace {

constexpr Index operations_per_number = 16;

std::string slot_path(const std::string& slot, const std::string& path) {
  return slot + "." + path;
}

/// f(value, gradient, slot...) for each number of a section.
template <class T, std::size_t... I, class Section, class F>
void for_each_number(const Section& section, std::index_sequence<I...>, F f) {
  T* value = section.parameter.template mutable_data<T>().data();
  const T* g = section.gradient.template data<T>().data();
  const std::array<T*, sizeof...(I)> kept{section.slots[I]->template mutable_data<T>().data()...};
  for (Index i = section.begin; i < section.end; ++i) f(value[i], g[i], kept[I][i]...);
}

/// Stochastic gradient descent with momentum (Polyak 1964) and Nesterov's (Sutskever et al. 2013)
/// as PyTorch writes it:
///   g = gradient + weight_decay value;  m = momentum m + g
///   value -= lr m, or with Nesterov lr (g + momentum m)
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : Optimizer(options) {
    if (options.momentum > 0) slots_ = {"momentum"};
  }

 private:
  std::span<const std::string> slots() const override { return slots_; }

  void update(const Section& section, double learning_rate, std::int64_t) const override {
    dispatch(section.gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto decay = static_cast<T>(section.weight_decay),
                 momentum = static_cast<T>(options_.momentum), rate = static_cast<T>(learning_rate);
      if (section.slots.empty())
        return for_each_number<T>(section, std::index_sequence<>(),
                                  [=](T& value, T g) { value -= rate * (g + decay * value); });
      const auto ahead = static_cast<T>(options_.nesterov ? 1 : 0),
                 kept = options_.nesterov ? momentum : T{1};
      for_each_number<T>(section, std::make_index_sequence<1>(), [=](T& value, T g, T& m) {
        g += decay * value;
        m = momentum * m + g;
        value -= rate * (ahead * g + kept * m);
      });
    });
  }

  std::vector<std::string> slots_;
};

/// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019, "Decoupled Weight Decay
/// Regularization"):
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   value -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// Weight decay adds weight_decay value to g (Adam) or takes lr weight_decay value off the value
/// first (AdamW). With `amsgrad` the largest v so far takes the place of v (Reddi et al. 2018, "On
/// the Convergence of Adam and Beyond", with PyTorch's correction of the bias).
class Adam final : public Optimizer {
 public:
  explicit Adam(const OptimizerOptions& options) : Optimizer(options) {
    if (options.amsgrad) slots_.emplace_back("max_second_moment");
  }

 private:
  std::span<const std::string> slots() const override { return slots_; }

  void update(const Section& section, double learning_rate, std::int64_t step) const override {
    const double t = static_cast<double>(step + 1);
    const bool decoupled = options_.kind == OptimizerKind::adamw;
    dispatch(section.gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto beta1 = static_cast<T>(options_.beta1), beta2 = static_cast<T>(options_.beta2);
      // Subtracted in float64: float32's 1 - 0.999f is off by 7e-6.
      const auto rest1 = static_cast<T>(1 - options_.beta1),
                 rest2 = static_cast<T>(1 - options_.beta2);
      const auto epsilon = static_cast<T>(options_.epsilon);
      const auto rate = static_cast<T>(learning_rate / (1 - std::pow(options_.beta1, t)));
      const auto correction = static_cast<T>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
      const auto added = static_cast<T>(decoupled ? 0 : section.weight_decay);
      const auto kept = static_cast<T>(decoupled ? 1 - learning_rate * section.weight_decay : 1);
      const auto moments = [=](T value, T g, T& m, T& v) {
        g += added * value;
        m = beta1 * m + rest1 * g;
        v = beta2 * v + rest2 * g * g;
      };
      const auto updated = [=](T value, T m, T v) {
        return kept * value - rate * m / (std::sqrt(v) * correction + epsilon);
      };
      if (options_.amsgrad)
        return for_each_number<T>(section, std::make_index_sequence<3>(),
                                  [=](T& value, T g, T& m, T& v, T& largest) {
                                    moments(value, g, m, v);
                                    largest = v < largest ? largest : v;
                                    value = updated(value, m, largest);
                                  });
      for_each_number<T>(section, std::make_index_sequence<2>(), [=](T& value, T g, T& m, T& v) {
        moments(value, g, m, v);
        value = updated(value, m, v);
      });
    });
  }

  std::vector<std::string> slots_ = {"first_moment", "second_moment"};
};

/// RMSprop (Hinton 2012, lecture 6e of "Neural Networks for Machine Learning"), with momentum as
/// PyTorch adds it:
///   v = beta2 v + (1 - beta2) g^2;  m = momentum m + g / (sqrt(v) + epsilon);  value -= lr m
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(const OptimizerOptions& options) : Optimizer(options) {
    if (options.momentum > 0) slots_.emplace_back("momentum");
  }

 private:
  std::span<const std::string> slots() const override { return slots_; }

  void update(const Section& section, double learning_rate, std::int64_t) const override {
    dispatch(section.gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto decay = static_cast<T>(section.weight_decay),
                 momentum = static_cast<T>(options_.momentum), rate = static_cast<T>(learning_rate),
                 beta = static_cast<T>(options_.beta2), rest = static_cast<T>(1 - options_.beta2),
                 epsilon = static_cast<T>(options_.epsilon);
      const auto scaled = [=](T value, T g, T& v) {
        g += decay * value;
        v = beta * v + rest * g * g;
        return g / (std::sqrt(v) + epsilon);
      };
      if (section.slots.size() == 1)
        return for_each_number<T>(section, std::make_index_sequence<1>(), [=](T& value, T g, T& v) {
          value -= rate * scaled(value, g, v);
        });
      for_each_number<T>(section, std::make_index_sequence<2>(), [=](T& value, T g, T& v, T& m) {
        m = momentum * m + scaled(value, g, v);
        value -= rate * m;
      });
    });
  }

  std::vector<std::string> slots_ = {"second_moment"};
};

/// Adagrad (Duchi et al. 2011, "Adaptive Subgradient Methods"):
///   s = s + g^2;  value -= lr g / (sqrt(s) + epsilon)
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerOptions& options) : Optimizer(options) {}

 private:
  std::span<const std::string> slots() const override { return slots_; }

  void update(const Section& section, double learning_rate, std::int64_t) const override {
    dispatch(section.gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto decay = static_cast<T>(section.weight_decay), rate = static_cast<T>(learning_rate),
                 epsilon = static_cast<T>(options_.epsilon);
      for_each_number<T>(section, std::make_index_sequence<1>(), [=](T& value, T g, T& s) {
        g += decay * value;
        s += g * g;
        value -= rate * g / (std::sqrt(s) + epsilon);
      });
    });
  }

  std::vector<std::string> slots_ = {"sum_of_squares"};
};

}  // namespace

void Optimizer::step(std::span<const NamedParameter> parameters, const Gradients& gradients,
                     double learning_rate, std::int64_t step) {
  std::string missing;
  std::size_t trained = 0;
  for (const auto& [path, parameter] : parameters) {
    if (gradients.has(*parameter))
      ++trained;
    else if (!parameter->frozen())
      missing += " " + path;
  }
  require<ValueError>(missing.empty() || !options_.require_gradients,
                      "[optimizer] no gradient for:{}; freeze what is not to be trained", missing);
  require<ValueError>(trained == gradients.size(),
                      "[optimizer] {} parameters have gradients but {} are listed: a module's "
                      "visit() leaves some out",
                      gradients.size(), trained);

  std::vector<Section> sections;
  Index numbers = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = *parameters[i].parameter;
    if (!gradients.has(parameter)) continue;
    parameter.make_unshared();
    const Entry& own = entry_of(parameters[i], i);
    for (Tensor* slot : own.slots)  // a checkpoint may hold it
      if (!slot->unshared()) *slot = qkv::copy_if_shared(*slot);
    const Index size = parameter.value().size();
    sections.push_back(
        {parameter, gradients.of(parameter), own.slots, own.weight_decay, numbers, numbers + size});
    numbers += size;
  }
  // Threads share out the numbers of all parameters as if they stood in one row.
  parallel_for(partition(numbers, operations_per_number), [&](Index begin, Index end) {
    for (Section section : sections) {
      const Index start = section.begin;
      section.begin = std::max(begin, start) - start;
      section.end = std::min(end, section.end) - start;
      if (section.begin < section.end) update(section, learning_rate, step);
    }
  });
}

const Optimizer::Entry& Optimizer::entry_of(const NamedParameter& entry, std::size_t i) {
  if (i >= entries_.size()) entries_.resize(i + 1);
  if (entries_[i].of == entry) return entries_[i];
  Entry own = {entry, {}, decays(entry) ? options_.weight_decay : 0};
  for (const std::string& slot : slots()) {
    Tensor& value = state_[slot_path(slot, entry.path)];
    if (!value) value = Tensor::zeros(entry.parameter->shape(), entry.parameter->value().dtype());
    own.slots.push_back(&value);
  }
  return entries_[i] = std::move(own);
}

void Optimizer::load_state(std::span<const NamedParameter> parameters,
                           std::map<std::string, Tensor> state) {
  std::map<std::string, Shape> expected;
  for (const auto& [path, parameter] : parameters)
    for (const std::string& slot : slots()) expected[slot_path(slot, path)] = parameter->shape();
  for (const auto& [path, value] : state) {
    const auto found = expected.find(path);
    require<ValueError>(found != expected.end(), "[optimizer] state {} belongs to no parameter",
                        path);
    require<ValueError>(found->second == value.shape(),
                        "[optimizer] state {} has shape {} instead of {}", path, value.shape(),
                        found->second);
  }
  state_ = std::move(state);
  entries_.clear();
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(options);
    case OptimizerKind::rmsprop:
      return std::make_unique<RmsProp>(options);
    case OptimizerKind::adagrad:
      return std::make_unique<Adagrad>(options);
    default:
      return std::make_unique<Adam>(options);
  }
}

bool decays(const NamedParameter& parameter) {
  const auto named = [&](std::string_view part) {
    return parameter.path.find(part) != std::string::npos;
  };
  return parameter.parameter->shape().rank() >= 2 && !named("embed") && !named("position");
}

double clip_norm(Gradients& gradients, double limit) {
  const double norm = gradients.norm();
  if (limit > 0 && norm > limit) gradients *= limit / norm;
  return norm;
}

void clip_value(Gradients& gradients, double limit) {
  if (limit > 0) gradients.clamp(limit);
}

}  // namespace qkv
