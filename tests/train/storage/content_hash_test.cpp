#include "train/storage/content_hash.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <vector>

#include "train/storage/seal.h"

using namespace qkv;

TEST_CASE(
    "the checksum of tensors is the hash of their names and elements, in the order of names") {
  // printf 'a.b\0\0\x80\x3f\0\0\0\xc0c\0\0\0\0' | xxhsum -H3
  const Tensor a = Tensor::from({1, -2}, {2}, DType::float32);
  const Tensor zero = Tensor::from({0}, {1}, DType::float32);
  CHECK(checksum_of({{"c", zero}, {"a.b", a}}) == "68015d9caae25b9a");
  const Tensor negative_zero = Tensor::from({-0.0}, {1}, DType::float32);
  CHECK(checksum_of({{"c", negative_zero}, {"a.b", a}}) != checksum_of({{"c", zero}, {"a.b", a}}));
  CHECK(checksum_of({}) == "2d06800538d394c2");  // of no bytes
}

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
