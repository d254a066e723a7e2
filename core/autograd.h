#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/anomaly.h"
#include "core/execution.h"
#include "core/memory.h"
#include "core/tensor.h"

namespace qkv {

class Parameter;
class Gradients;
class InputGradients;

/// One application of an op in the graph: the nodes of its inputs and its backward. A node without
/// inputs is a parameter.
struct Node {
  explicit Node(std::string_view name) : op(name) {}
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Adds to the inputs' gradients what follows from `dy`, the gradient with respect to this node's
  /// value (vector-Jacobian product).
  virtual void backward(const Tensor& dy, InputGradients& inputs);

  /// Whether the op can recompute its value, bit by bit, from what it saves for backward.
  virtual bool recomputable() const { return false; }
  virtual Tensor recompute() const { return {}; }

  std::string_view op;
  std::vector<std::shared_ptr<Node>, detail::BlockAllocator<std::shared_ptr<Node>>>
      inputs;  ///< null: a constant

  /// At least 1 + the largest rank among the inputs: descending ranks are a topological order.
  int rank = 0;
  Shape shape = {};              ///< of the value, and so of its gradient
  DType dtype = DType::float32;  ///< likewise

  // Used while the graph is walked; a graph is walked by one thread at a time.
  bool visited = false;
  std::size_t found = 0;  ///< number in the order in which the walk found the nodes
  Tensor gradient, recomputed;
};

/// An input that an op saves for its backward: its value, or its node if that can recompute the
/// value (activation recomputation; Chen et al. 2016, "Training Deep Nets with Sublinear Memory
/// Cost").
class SavedInput {
 public:
  explicit SavedInput(const Tensor& x)
      : node_(x.node() && x.node()->recomputable() ? x.node() : nullptr),
        value_(node_ ? Tensor() : x.detach()) {}

  Tensor value() const {
    if (!node_) return value_;
    if (!node_->recomputed) node_->recomputed = node_->recompute();
    return node_->recomputed;
  }

 private:
  std::shared_ptr<Node> node_;
  Tensor value_;
};

/// Gradients of a scalar with respect to the parameters that it depends on.
class Gradients {
 public:
  /// A parameter's node and its gradient.
  using Entry = std::pair<const Node*, Tensor>;
  using Entries = std::vector<Entry, detail::BlockAllocator<Entry>>;

  Gradients() = default;
  /// Makes gradients of the entries that several processes have exchanged.
  explicit Gradients(Entries entries) : entries_(std::move(entries)) {}
  /// The gradients in the order of the walk; this object is empty then.
  Entries release() { return std::exchange(entries_, {}); }
  /// Moves the gradient of one parameter out; an empty tensor where there is none.
  Tensor release(const Node* parameter);

  bool has(const Parameter& parameter) const;
  /// Throws ValueError when the parameter received no gradient.
  const Tensor& of(const Parameter& parameter) const;
  /// Number of parameters that received a gradient.
  std::size_t size() const { return entries_.size(); }

  /// Micro-batches accumulate by addition.
  Gradients& operator+=(Gradients other);
  Gradients& operator*=(double factor);
  /// Clamps every element to [-limit, limit].
  Gradients& clamp(double limit);
  /// sqrt(sum of squares) over all gradients, summed in float64; the same bits for equal gradients,
  /// whatever their order.
  double norm() const;

 private:
  friend class InputGradients;
  /// The gradient so far, empty at first.
  Tensor& at(const Node* parameter);

  Entries entries_;
};

/// The gradients of an op's inputs, to which its backward adds.
class InputGradients {
 public:
  InputGradients(Node& node, Gradients& gradients, bool last = false)
      : node_(node), gradients_(gradients), last_(last) {}

  /// A tensor of the shape of `saved`, which the op saved for its backward, for a gradient to be
  /// written to. It may be `saved` itself (buffer donation, when the graph is being freed and no
  /// other tensor shares the buffer), so each element of `saved` must be read before it is written.
  Tensor donated_or_new(const Tensor& saved) const;

  /// Whether input `i` depends on a parameter. Throws ValueError when the op has no such input.
  bool needs(std::size_t i) const {
    if (i >= node_.inputs.size()) throw_no_input(i);
    return node_.inputs[i] != nullptr;
  }
  /// Adds `dx` to the gradient of input `i`. Throws ShapeError or TypeError when its
  /// shape or type is not the input's.
  void add(std::size_t i, Tensor dx);
  /// Adds `dx()`, computed only when it is needed.
  template <class F>
  requires std::is_invocable_r_v<Tensor, F>
  void add(std::size_t i, F&& dx) {
    if (needs(i)) add(i, Tensor(dx()));
  }
  /// Calls `accumulate(sum)`, which adds to the gradient accumulated so far; that one is empty at
  /// first, and may do so in its buffer.
  template <class F>
  requires std::is_invocable_r_v<Tensor, F, Tensor>
  void add(std::size_t i, F&& accumulate) {
    if (!needs(i)) return;
    Tensor& sum = accumulated(i);
    sum = accumulate(std::exchange(sum, {}));
    require_like_input(i, sum);
    if (Execution::current().detects_anomaly) detail::require_finite_gradient(node_.op, i, sum);
  }
  /// For an op that computes its value again: walks the graph of `y`, whose gradient is `dy`, and
  /// adds to the gradients of the parameters there.
  void walk(Tensor y, const Tensor& dy);
  /// The gradient of input `i` so far, which is empty then.
  Tensor take(std::size_t i) { return std::exchange(accumulated(i), {}); }

 private:
  Tensor& accumulated(std::size_t i);
  void require_like_input(std::size_t i, const Tensor& dx) const;
  [[noreturn]] void throw_no_input(std::size_t i) const;

  Node& node_;
  Gradients& gradients_;
  bool last_;
};

/// The derivatives of a scalar by every parameter that it depends on (reverse mode: Linnainmaa
/// 1970; Griewank & Walther, "Evaluating Derivatives"), added to `sum`. Takes the loss by value:
/// moved in, the graph is freed while it is walked. Throws ShapeError when `loss` is not a scalar.
Gradients gradients_of(Tensor loss, Gradients sum = {});

namespace detail {
/// A function of `recomputed`, with its state.
using RecomputedFunction = std::function<Tensor(std::span<const Tensor>)>;
Tensor recomputed(std::vector<Tensor> inputs, const RecomputedFunction& first,
                  RecomputedFunction again);
}  // namespace detail

/// f(inputs), of whose graph only the inputs stay in memory: backward computes it again (activation
/// recomputation; Chen et al. 2016; torch.utils.checkpoint, jax.checkpoint). `f` maps a span of
/// tensors to a tensor and may use parameters; where it changes its own state, such as a stream of
/// random numbers, backward starts from a copy of it as it is now. The value has the bits
/// of f(inputs), and so have the gradients, unless several such functions share an input and use it
/// at different depths: its terms are then added function by function.
template <class F>
Tensor recomputed(std::vector<Tensor> inputs, F& f) {
  return detail::recomputed(std::move(inputs), std::ref(f), f);
}

/// While alive, ops on this thread record no graph.
class NoGrad {
 public:
  NoGrad() : scope_(Execution::current().with(&Execution::records_graph, false)) {}

 private:
  ExecutionScope scope_;
};

template <class Backward>
concept Recomputable = requires(const Backward& backward) {
  { backward.recompute() } -> std::same_as<Tensor>;
};

/// `y`, computed by `op` from `inputs`, with its node in the graph when graphs are recorded and
/// some input depends on a parameter. `backward(dy, inputs)` may hold detached tensors and
/// SavedInputs only: holding `y` would keep the graph alive. A member `recompute()` of it computes
/// `y` again, bit by bit, so that other ops need not save it.
template <class Inputs, class Backward>
Tensor record(std::string_view op, Tensor y, const Inputs& inputs, Backward backward) {
  struct OpNode final : Node {
    OpNode(std::string_view name, Backward&& given) : Node(name), f(std::move(given)) {}
    void backward(const Tensor& dy, InputGradients& dx) override { f(dy, dx); }
    bool recomputable() const override { return Recomputable<Backward>; }
    Tensor recompute() const override {
      if constexpr (Recomputable<Backward>)
        return f.recompute();
      else
        return {};
    }
    Backward f;
  };
  if (Execution::current().detects_anomaly)
    detail::require_no_anomaly(op, y, std::vector<Tensor>(inputs.begin(), inputs.end()));
  bool depends = false;
  for (const Tensor& x : inputs) depends = depends || x.node();
  if (!depends || !Execution::current().records_graph) return y;
  auto node =
      std::allocate_shared<OpNode>(detail::BlockAllocator<OpNode>(), op, std::move(backward));
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    node->inputs.push_back(x.node());
    if (x.node()) node->rank = std::max(node->rank, x.node()->rank + 1);
  }
  return y.with_node(std::move(node));
}

template <class Backward>
Tensor record(std::string_view op, Tensor y,
              std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
              Backward backward) {
  return record<decltype(inputs), Backward>(op, std::move(y), inputs, std::move(backward));
}

}  // namespace qkv
