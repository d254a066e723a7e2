#include "train/storage/file_hash.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"
#include "train/storage/seal.h"

using namespace qkv;

TEST_CASE("the hash of a file is the one that a seal has for its contents") {
  const TempDir dir;
  for (const std::size_t size : {0, 4, 1 << 20, 3'000'000}) {
    CAPTURE(size);
    std::vector<std::byte> bytes(size, std::byte{'q'});
    seal(bytes);
    const std::string_view sealed(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string hash = hash_of_file(dir.write("f", sealed.substr(0, size)));
    CHECK(hash.size() == 32);
    CHECK(sealed.ends_with(" " + hash + "\n"));
  }
}

TEST_CASE("what is no regular file has no hash") {
  const TempDir dir;
  const auto pipe = dir.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const auto& file : {dir.path(), pipe, dir.path() / "none"})
    CHECK(hash_of_file(file).empty());
}
