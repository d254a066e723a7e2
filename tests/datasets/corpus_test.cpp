#include "datasets/corpus.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>

using namespace qkv;

TEST_CASE("sequences of ids come back as they were added, whatever the ids and the lengths") {
  constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int32_t> edges = {0,       1,       127,       128,     16383,  16384,
                                           2097151, 2097152, 268435455, 1 << 28, largest};
  std::mt19937 random(1);
  std::vector<std::vector<std::int32_t>> added = {{}, edges, {}, {largest}};
  for (int i = 0; i < 200; ++i) {
    auto& ids = added.emplace_back(random() % 40);
    for (auto& id : ids)
      id = random() % 2 ? edges[random() % edges.size()]
                        : static_cast<std::int32_t>(random() >> (1 + random() % 31));
  }
  IdLists lists;
  for (const auto& ids : added) lists.add(ids);
  REQUIRE(lists.size() == std::ssize(added));
  for (Index i = 0; i < lists.size(); ++i) {
    const auto& ids = added[static_cast<std::size_t>(i)];
    REQUIRE(lists[i] == ids);
    REQUIRE(lists.length(i) == std::ssize(ids));
  }
}
