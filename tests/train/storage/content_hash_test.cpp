#include "train/storage/content_hash.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <vector>

#include "train/storage/seal.h"

using namespace qkv;

TEST_CASE("the hash of blocks is the one that a seal has for all of them together") {
  for (const std::size_t size : {0U, 4U, 1000U, 300'000U}) {
    CAPTURE(size);
    const std::vector<std::byte> bytes(size, std::byte{'q'});
    ContentHash hash;
    const auto blocks = std::span(bytes);
    hash.add(blocks.first(size / 3));
    hash.add(blocks.subspan(size / 3));
    CHECK(hash.text().size() == 32);
    CHECK(seal_of(bytes).ends_with(fmt::format(" {}\n", hash.text())));
  }
}
