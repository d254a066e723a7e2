#include "core/autograd.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel.h"
#include "core/parameter.h"

namespace qkv {
namespace {

/// sum += term, in place when no other tensor shares its buffer.
void accumulate(Tensor& sum, Tensor term) {
  if (!sum) {
    sum = std::move(term);
    return;
  }
  require(sum.shape() == term.shape(), "[backward] gradients of shapes {} and {} for one value",
          sum.shape(), term.shape());
  Tensor result = sum.unshared() ? sum : Tensor::empty(term.shape(), term.dtype());
  dispatch(term.dtype(), [&]<class T>() {
    const T* a = sum.data<T>().data();
    const T* b = term.data<T>().data();
    T* y = result.shared_mutable_data<T>().data();
    parallel_for(partition(term.size(), 1), [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) y[i] = a[i] + b[i];
    });
  });
  sum = std::move(result);
}

/// Replaces each element g by f(g), in place when no other tensor shares the buffer.
template <class F>
void replace(Tensor& gradient, F f) {
  gradient = copy_if_shared(std::move(gradient));
  dispatch(gradient.dtype(), [&]<class T>() {
    auto* g = gradient.mutable_data<T>().data();
    parallel_for(partition(gradient.size(), 1), [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) g[i] = f(g[i]);
    });
  });
}

/// The op nodes that a value depends on, in an order in which each comes before its inputs.
class Walk {
 public:
  explicit Walk(std::shared_ptr<Node> root) {
    visit(std::move(root));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = *nodes_[i];
      for (const auto& input : node.inputs) visit(input);
    }
    std::ranges::sort(nodes_, std::ranges::greater(), [](const auto& node) { return node->rank; });
  }
  /// Resets the nodes of an unfinished walk, so that a graph can be walked again after an
  /// exception.
  ~Walk() {
    for (const auto& node : nodes_)
      if (node) reset(*node);
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Runs backward from node to node and releases each as soon as it is done.
  void run(Gradients& gradients) {
    for (auto& node : nodes_) {
      const Tensor dy = std::exchange(node->gradient, {});
      InputGradients inputs(*node, gradients, node.use_count() == 1);
      if (dy) node->backward(dy, inputs);
      reset(*node);
      node.reset();
    }
  }

 private:
  void visit(std::shared_ptr<Node> node) {
    if (!node || node->inputs.empty() || std::exchange(node->visited, true)) return;
    nodes_.push_back(std::move(node));
  }

  static void reset(Node& node) {
    node.visited = false;
    node.gradient = node.recomputed = {};
  }

  std::vector<std::shared_ptr<Node>, detail::BlockAllocator<std::shared_ptr<Node>>> nodes_;
};

}  // namespace

Node::~Node() {
  // Releasing a long chain by recursion would overflow the stack.
  auto owned = std::move(inputs);
  while (!owned.empty()) {
    const std::shared_ptr<Node> node = std::move(owned.back());
    owned.pop_back();
    if (node.use_count() != 1) continue;
    std::ranges::move(node->inputs, std::back_inserter(owned));
    node->inputs.clear();
  }
}

void Node::backward(const Tensor&, InputGradients&) {}

Tensor& InputGradients::accumulated(std::size_t i) {
  Node& input = *node_.inputs[i];
  return input.inputs.empty() ? gradients_.at(&input) : input.gradient;
}

void InputGradients::add(std::size_t i, Tensor dx) {
  if (!needs(i)) return;
  if (Execution::current().detects_anomaly) detail::require_finite_gradient(node_.op, i, dx);
  accumulate(accumulated(i), std::move(dx));
}

Tensor InputGradients::donated_or_new(const Tensor& saved) const {
  return last_ && saved.unshared() ? saved : Tensor::empty(saved.shape(), saved.dtype());
}

Gradients gradients_of(Tensor loss, Gradients sum) {
  require(loss.size() == 1,
          "[gradients_of] needs a scalar loss, got shape {}; reduce it with mean() or sum()",
          loss.shape());
  if (!loss.node()) return sum;
  std::shared_ptr<Node> root = loss.node();
  Node consumer("loss");
  consumer.inputs = {root};
  InputGradients(consumer, sum).add(0, Tensor::full(loss.shape(), 1, loss.dtype()));
  loss = {};
  consumer.inputs.clear();
  Walk walk(std::move(root));
  walk.run(sum);
  return sum;
}

bool Gradients::has(const Parameter& parameter) const {
  return std::ranges::any_of(entries_, [&](const Entry& e) { return e.first == parameter.node(); });
}

const Tensor& Gradients::of(const Parameter& parameter) const {
  const auto found = std::ranges::find(entries_, parameter.node(), &Entry::first);
  require<ValueError>(
      found != entries_.end(),
      "[gradients] a parameter of shape {} received no gradient: the loss does not depend on it",
      parameter.value().shape());
  return found->second;
}

Tensor& Gradients::at(const Node* parameter) {
  const auto found = std::ranges::find(entries_, parameter, &Entry::first);
  return found == entries_.end() ? entries_.emplace_back(parameter, Tensor()).second
                                 : found->second;
}

Gradients& Gradients::operator+=(Gradients other) {
  for (auto& [parameter, gradient] : other.entries_) accumulate(at(parameter), std::move(gradient));
  return *this;
}

Gradients& Gradients::operator*=(double factor) {
  for (Entry& entry : entries_)
    replace(entry.second, [=]<class T>(T g) { return g * static_cast<T>(factor); });
  return *this;
}

Gradients& Gradients::clamp(double limit) {
  for (Entry& entry : entries_)
    replace(entry.second, [=]<class T>(T g) {
      return std::clamp(g, static_cast<T>(-limit), static_cast<T>(limit));
    });
  return *this;
}

double Gradients::norm() const {
  double squares = 0;
  for (const auto& entry : entries_)
    dispatch(entry.second.dtype(), [&]<class T>() {
      const auto elements = entry.second.data<T>();
      // Independent accumulators hide addition latency.
      std::array<double, 16> sums = {};
      const std::size_t whole = elements.size() / sums.size() * sums.size();
      for (std::size_t i = 0; i < whole; i += sums.size())
        for (std::size_t lane = 0; lane < sums.size(); ++lane) {
          const auto g = static_cast<double>(elements[i + lane]);
          sums[lane] += g * g;
        }
      for (std::size_t i = whole; i < elements.size(); ++i)
        sums[i - whole] += static_cast<double>(elements[i]) * static_cast<double>(elements[i]);
      for (const double sum : sums) squares += sum;
    });
  return std::sqrt(squares);
}

}  // namespace qkv
