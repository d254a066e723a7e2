#include "core/autograd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

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

double sum_of_squares(const Tensor& gradient) {
  // Independent accumulators hide addition latency.
  std::array<double, 16> sums = {};
  dispatch(gradient.dtype(), [&]<class T>() {
    const auto elements = gradient.data<T>();
    const std::size_t whole = elements.size() / sums.size() * sums.size();
    for (std::size_t i = 0; i < whole; i += sums.size())
      for (std::size_t j = 0; j < sums.size(); ++j) {
        const auto g = static_cast<double>(elements[i + j]);
        sums[j] += g * g;
      }
    for (std::size_t i = whole; i < elements.size(); ++i)
      sums[i - whole] += static_cast<double>(elements[i]) * static_cast<double>(elements[i]);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
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
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->found = i;
    // Equal ranks stay in the order of the graph, so that a part of it that is walked on its own
    // adds gradients in the same order.
    std::ranges::sort(nodes_, [](const auto& a, const auto& b) {
      return a->rank != b->rank ? a->rank > b->rank : a->found < b->found;
    });
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

void InputGradients::require_like_input(std::size_t i, const Tensor& dx) const {
  const Node& input = *node_.inputs[i];
  require(dx.shape() == input.shape,
          "[{}] backward has a gradient of shape {} for input {} of shape {}", node_.op, dx.shape(),
          i, input.shape);
  require<TypeError>(dx.dtype() == input.dtype,
                     "[{}] backward has a gradient of {} for input {} of {}", node_.op,
                     to_string(dx.dtype()), i, to_string(input.dtype));
}

void InputGradients::throw_no_input(std::size_t i) const {
  throw ValueError(fmt::format("[{}] backward adds a gradient to input {} of {}, counted from 0",
                               node_.op, i, node_.inputs.size()));
}

void InputGradients::add(std::size_t i, Tensor dx) {
  if (!needs(i)) return;
  require_like_input(i, dx);
  if (Execution::current().detects_anomaly) detail::require_finite_gradient(node_.op, i, dx);
  accumulate(accumulated(i), std::move(dx));
}

Tensor InputGradients::donated_or_new(const Tensor& saved) const {
  return last_ && saved.unshared() ? saved : Tensor::empty(saved.shape(), saved.dtype());
}

void InputGradients::walk(Tensor y, const Tensor& dy) {
  std::shared_ptr<Node> root = y.node();
  y = {};
  root->gradient = dy;
  Walk(std::move(root)).run(gradients_);
}

namespace {

template <class T, class... Arguments>
std::shared_ptr<T> make_node(Arguments&&... arguments) {
  return std::allocate_shared<T>(detail::BlockAllocator<T>(),
                                 std::forward<Arguments>(arguments)...);
}

bool is_parameter(const Tensor& x) {
  return x.node() && x.node()->inputs.empty();
}

/// An input of a function that is computed again, the end of its graph.
struct RecomputedInput final : Node {
  RecomputedInput() : Node("input") { inputs.push_back(nullptr); }
  void backward(const Tensor& dy, InputGradients&) override { result = dy; }

  Tensor result;
};

/// Parameters among the inputs of the function belong to the function.
struct RecomputedNode final : Node {
  RecomputedNode(std::vector<Tensor> values, detail::RecomputedFunction f)
      : Node("recomputed"), values(std::move(values)), f(std::move(f)) {}

  void backward(const Tensor& dy, InputGradients& gradients) override {
    std::vector<std::shared_ptr<RecomputedInput>> ends(values.size());
    std::vector<Tensor> copies = values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!gradients.needs(i)) continue;
      ends[i] = make_node<RecomputedInput>();
      // Continues the sum so far, as the function's ops themselves would.
      ends[i]->gradient = gradients.take(i);
      copies[i] = values[i].with_node(ends[i]);
    }
    const ExecutionScope scope(Execution::current().with(&Execution::records_graph, true));
    Tensor y = detail::RecomputedFunction(f)(copies);
    copies.clear();
    gradients.walk(std::move(y), dy);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const auto& end = ends[i]; end && (end->result || end->gradient))
        gradients.add(i, std::move(end->result ? end->result : end->gradient));
  }

  std::vector<Tensor> values;  ///< of the inputs
  detail::RecomputedFunction f;
};

}  // namespace

Tensor detail::recomputed(std::vector<Tensor> inputs, const RecomputedFunction& first,
                          RecomputedFunction again) {
  if (!Execution::current().records_graph) return first(inputs);
  std::vector<Tensor> values;
  values.reserve(inputs.size());
  for (const Tensor& x : inputs) values.push_back(x && !is_parameter(x) ? x.detach() : x);
  const auto node = make_node<RecomputedNode>(values, std::move(again));
  int rank = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool ends_graph = inputs[i].node() && !is_parameter(inputs[i]);
    node->inputs.push_back(ends_graph ? inputs[i].node() : nullptr);
    if (!ends_graph) continue;
    rank = std::max(rank, inputs[i].node()->rank);
    values[i] = values[i].with_node(make_node<RecomputedInput>());
  }
  // The function's graph tells whether the result depends on a parameter, and its rank.
  const Tensor y = first(values);
  if (!y.node() || is_parameter(y)) return y;
  node->rank = rank + std::max(1, y.node()->rank);
  return y.with_node(node);
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
  Walk(std::move(root)).run(sum);
  return sum;
}

bool Gradients::has(const Parameter& parameter) const {
  return std::ranges::any_of(entries_, [&](const Entry& e) { return e.first == parameter.node(); });
}

const Tensor& Gradients::of(const Parameter& parameter) const {
  const auto found = std::ranges::find(entries_, parameter.node(), &Entry::first);
  require<ValueError>(
      found != entries_.end(),
      "[gradients] {} of shape {} received no gradient: the loss does not depend on it, or "
      "an op's backward adds none for it",
      parameter.path().empty() ? "a parameter" : parameter.path(), parameter.shape());
  return found->second;
}

Tensor Gradients::release(const Node* parameter) {
  const auto found = std::ranges::find(entries_, parameter, &Entry::first);
  if (found == entries_.end()) return {};
  Tensor gradient = std::move(found->second);
  entries_.erase(found);
  return gradient;
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
  Index elements = 0;
  for (const auto& entry : entries_) elements += entry.second.size();
  std::vector<double> squares(entries_.size());  // of each gradient
  const Index count = std::ssize(entries_);
  parallel_for(partition(count, elements / std::max<Index>(count, 1)), [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      squares[i] = sum_of_squares(entries_[i].second);
  });
  // The smallest first; the bits of squares are ordered as their values, NaN included.
  std::ranges::sort(squares, {}, [](double x) { return std::bit_cast<std::uint64_t>(x); });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

}  // namespace qkv
