#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/shape.h"

/// The order in which the gradients of a step's shards are added: always that of one binary tree,
/// whichever thread or rank computes a shard, so that sums have the same bits on any number of
/// threads and ranks:
///
///     (((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)))
namespace qkv {

/// A node of the tree: shards [first, first + count). `count` is a power of two and divides
/// `first`.
struct Subtree {
  Index first = 0, count = 0;

  Subtree left() const { return {first, count / 2}; }
  Subtree right() const { return {first + count / 2, count / 2}; }
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

/// The fewest subtrees that shards [begin, end) consist of, in order.
inline std::vector<Subtree> subtrees(Index begin, Index end) {
  std::vector<Subtree> found;
  while (begin < end) {
    const auto length = static_cast<Index>(std::bit_floor(static_cast<std::size_t>(end - begin)));
    const Index aligned = begin & -begin;
    found.push_back({begin, begin == 0 ? length : std::min(length, aligned)});
    begin += found.back().count;
  }
  return found;
}

/// The sum over `node`: `take(subtree)` returns that of a subtree as an optional, nothing where its
/// halves are to be added by `add(left, right)`. Subtrees are taken in order.
template <class Take, class Add,
          class Sum = typename std::invoke_result_t<Take&, Subtree>::value_type>
Sum tree_sum(Subtree node, Take& take, const Add& add) {
  if (std::optional<Sum> taken = take(node)) return std::move(*taken);
  Sum sum = tree_sum(node.left(), take, add);
  add(sum, tree_sum(node.right(), take, add));
  return sum;
}

/// The sum over a subtree.
template <class T>
struct PartialSum {
  Subtree subtree;
  T value;
};

/// For `tree_sum`: moves sums out of a list that is in order.
template <class T>
class TakeInOrder {
 public:
  explicit TakeInOrder(std::vector<PartialSum<T>>& sums) : next_(sums.begin()) {}

  std::optional<T> operator()(Subtree node) {
    if (next_->subtree != node) return std::nullopt;
    return std::move((next_++)->value);
  }

 private:
  typename std::vector<PartialSum<T>>::iterator next_;
};

/// The sums over `nodes`, in order, of terms in any order that make them up; moves the terms.
template <class T>
std::vector<T> tree_sums(std::span<const Subtree> nodes, std::vector<PartialSum<T>>& terms) {
  std::ranges::sort(terms, {}, [](const PartialSum<T>& term) { return term.subtree.first; });
  TakeInOrder take(terms);
  std::vector<T> sums;
  for (const Subtree node : nodes)
    sums.push_back(tree_sum(node, take, [](T& sum, T term) { sum += std::move(term); }));
  return sums;
}

}  // namespace qkv
