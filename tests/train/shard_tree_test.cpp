#include "train/ranks/shard_tree.h"

#include <doctest/doctest.h>

#include <string>

#include "core/parallel.h"

namespace qkv {
namespace {

void add(std::string& sum, const std::string& term) {
  sum = "(" + sum + " " + term + ")";
}

std::optional<std::string> leaf(Subtree node) {
  if (node.count > 1) return std::nullopt;
  return std::to_string(node.first);
}

/// The sum of `shards` that so many owners compute, each some in a row.
std::string sum_by(Index owners, Index shards) {
  const Chunks by_owner{shards, owners};
  std::vector<PartialSum<std::string>> sums;
  for (Index owner = 0; owner < owners; ++owner)
    for (const Subtree node : subtrees(by_owner.begin(owner), by_owner.end(owner)))
      sums.push_back({node, tree_sum(node, leaf, add)});
  TakeInOrder take(sums);
  return tree_sum({0, shards}, take, add);
}

}  // namespace

TEST_CASE("shards are added in the same tree, whichever thread or rank computes them") {
  CHECK(sum_by(1, 1) == "0");
  CHECK(sum_by(1, 4) == "((0 1) (2 3))");
  for (const Index shards : {1, 2, 4, 8, 64})
    for (Index owners = 2; owners <= 9; ++owners) {
      CAPTURE(shards);
      CAPTURE(owners);
      CHECK(sum_by(owners, shards) == sum_by(1, shards));
    }
}

TEST_CASE("a range of shards is the fewest subtrees") {
  CHECK(subtrees(3, 3).empty());
  CHECK(subtrees(0, 8) == std::vector<Subtree>{{0, 8}});
  CHECK(subtrees(2, 5) == std::vector<Subtree>{{2, 2}, {4, 1}});
  CHECK(subtrees(1, 8) == std::vector<Subtree>{{1, 1}, {2, 2}, {4, 4}});
}

}  // namespace qkv
