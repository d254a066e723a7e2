#include "train/storage/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/mutations.h"
#include "tests/support/temp_dir.h"

namespace qkv::safetensors_test {

namespace {

Safetensors sample() {
  return {.tensors = {{"encoder.w_q.weight", Tensor::from({1.0f, -2.5f, 3.0f, 0.1f}, {2, 2})},
                      {"double", Tensor::from({1.0, 1e-300, 2.0}, {3}, DType::float64)},
                      {"empty", Tensor::zeros({0, 3})},
                      {"scalar", Tensor::scalar(0.25)},
                      {"केक", Tensor::zeros({1, 1, 1, 1, 1, 1})}},
          .metadata = {{"qkv.config", "name = \"bank\"\n"}, {"empty", ""}}};
}

/// A file whose header is this text, before `data` bytes.
std::string file_with(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data, '\0');
}

/// The header of one tensor "w" of two float32 elements with some of its values changed.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"w":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

std::string two_tensors(const std::string& a, const std::string& b) {
  return fmt::format(R"({{"a":{{"dtype":"F32","shape":[1],"data_offsets":{}}},)"
                     R"("b":{{"dtype":"F32","shape":[1],"data_offsets":{}}}}})",
                     a, b);
}

/// The error of reading these bytes, without the file's name.
template <class E>
std::string error_of_bytes(const TempDir& dir, const std::string& bytes) {
  const auto file = dir.write("x.safetensors", bytes);
  const std::string error = error_of<E>([&] { read_safetensors(file); });
  return error.starts_with(file.string() + ": ") ? error.substr(file.string().size() + 2) : error;
}

}  // namespace

TEST_CASE("safetensors are read as they were written, bit for bit") {
  const TempDir dir;
  const Safetensors written = sample();
  const Safetensors read = read_safetensors(dir.write("x.safetensors", safetensors_bytes(written)));
  CHECK(read.metadata == written.metadata);
  REQUIRE(read.tensors.size() == written.tensors.size());
  for (const auto& [name, tensor] : written.tensors) {
    CAPTURE(name);
    const Tensor& found = read.tensors.at(name);
    CHECK(found.dtype() == tensor.dtype());
    CHECK(found.shape() == tensor.shape());
    CHECK(found.values() == tensor.values());
  }
  CHECK(safetensors_bytes(read) == safetensors_bytes(written));
}

TEST_CASE("the bytes of safetensors are those of the format") {
  const Safetensors contents{.tensors = {{"w", Tensor::from({1.0f, 2.0f}, {2})}}, .metadata = {}};
  const std::string header = R"({"w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}}  )";
  const std::string data("\0\0\x80\x3f\0\0\0\x40", 8);
  REQUIRE(header.size() == 56);
  CHECK(safetensors_bytes(contents) == file_with(header, 0) + data);
}

TEST_CASE("numbers of 16 bits are read exactly as float32") {
  const TempDir dir;
  struct Row {
    std::string dtype;
    std::vector<std::uint16_t> bits;
    std::vector<double> values;
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<Row> rows = {{R"("F16")",
                                  {0x0000, 0x3C00, 0xC000, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0xFC00},
                                  {0, 1, -2, 0x1p-24, -1023 * 0x1p-24, 65504, inf, -inf}},
                                 {R"("BF16")",
                                  {0x0000, 0x3F80, 0xC000, 0x0001, 0x807F, 0x7F7F, 0x7F80, 0xFF80},
                                  {0, 1, -2, 0x1p-133, -127 * 0x1p-133, 255 * 0x1p120, inf, -inf}}};
  for (const Row& row : rows) {
    CAPTURE(row.dtype);
    std::string bytes = file_with(entry(row.dtype, "[8]", "[0,16]"), 0);
    bytes.append(reinterpret_cast<const char*>(row.bits.data()), 16);
    const Tensor read = read_safetensors(dir.write("x.safetensors", bytes)).tensors.at("w");
    CHECK(read.dtype() == DType::float32);
    CHECK(read.values() == row.values);
  }
}

TEST_CASE("of tensors of integers the names are read") {
  const TempDir dir;
  const auto file = dir.write("x.safetensors", file_with(entry(R"("I64")", "[1]", "[0,8]"), 8));
  const Safetensors read = read_safetensors(file);
  CHECK(read.tensors.empty());
  CHECK(read.integers == std::vector<std::string>{"w"});
}

TEST_CASE("a file without tensors or metadata can be written and read") {
  const TempDir dir;
  const auto file = dir.write("x.safetensors", safetensors_bytes({}));
  CHECK(read_safetensors(file).tensors.empty());
}

TEST_CASE("what is no safetensors file is refused by name") {
  const TempDir dir;
  for (const std::string& bytes :
       {std::string(), std::string("short"), std::string(5000, 'x'), std::string(8, '\0'),
        file_with("[1]", 0), file_with(" {}", 0)}) {
    CAPTURE(bytes.size());
    CHECK(error_of_bytes<UserError>(dir, bytes) == "is not a safetensors file");
  }
  CHECK_THROWS_AS(read_safetensors(dir.path() / "none"), UserError);
}

TEST_CASE("a hostile header of safetensors is an error that says what is wrong") {
  const TempDir dir;
  const std::string max = "18446744073709551615", half = "9223372036854775808", f32 = R"("F32")";
  struct Row {
    std::string header, error;
    std::size_t data = 8;
  };
  const std::vector<Row> rows = {
      // JSON
      {"{", "the header is not a JSON object"},
      {"{}x", "the header is not a JSON object"},
      {R"({"w":NaN})", "the header is not a JSON object"},
      {R"({"w":1e999})", "the header is not a JSON object"},
      {"{\"\xff\":1}", "the header is not a JSON object"},
      {"{" + std::string(5, '\0') + "}", "the header is not a JSON object"},
      {"{\"w\":" + std::string(100'000, '['), "the header is nested deeper than 3 levels"},
      {R"({"w":{"shape":[[]]}})", "the header is nested deeper than 3 levels"},
      {R"({"w":1,"w":1})", "the header names \"w\" twice"},
      {R"({"w":{"shape":[],"shape":[]}})", "the header names \"shape\" twice"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "the header names \"a\" twice"},
      // metadata
      {R"({"__metadata__":[]})", "__metadata__ must be an object"},
      {R"({"__metadata__":{"a":1}})", "__metadata__: \"a\" must be a text"},
      // a tensor
      {R"({"w":[]})", "\"w\": must be an object"},
      {R"({"w":{}})", "\"w\": data_offsets must be a list"},
      {R"({"w":{"data_offsets":[0,8]}})", "\"w\": dtype must be a text"},
      {R"({"w":{"data_offsets":[0,8],"dtype":"F32"}})", "\"w\": shape must be a list"},
      {R"({"w":{"device":"cpu"}})", "\"w\": unknown key \"device\""},
      {entry("1", "[2]", "[0,8]"), "\"w\": dtype must be a text"},
      {entry(R"("F8_E4M3")", "[8]", "[0,8]"),
       "\"w\": dtype F8_E4M3 cannot be read; convert it to F32 or F64"},
      {entry(f32, "2", "[0,8]"), "\"w\": shape must be a list"},
      {entry(f32, "[-2]", "[0,8]"), "\"w\": shape must hold integers in [0, 2^63), got -2"},
      {entry(f32, "[2.0]", "[0,8]"), "\"w\": shape must hold integers in [0, 2^63), got 2.0"},
      {entry(f32, "[null]", "[0,8]"), "\"w\": shape must hold integers in [0, 2^63), got null"},
      {entry(f32, "[" + half + "]", "[0,8]"),
       "\"w\": shape must hold integers in [0, 2^63), got " + half},
      {entry(f32, "[4611686018427387904,4]", "[0,8]"),
       "\"w\": [shape] the number of elements of (4611686018427387904, 4) overflows"},
      {entry(f32, "[1,1,1,1,1,1,2]", "[0,8]"), "\"w\": [shape] rank 7 exceeds the largest rank 6"},
      {entry(f32, "[3]", "[0,8]"),
       "\"w\": shape (3,) of F32 does not take the 8 bytes from 0 to 8"},
      {entry(f32, "[4611686018427387904]", "[0,0]"),
       "\"w\": shape (4611686018427387904,) of F32 does not take the 0 bytes from 0 to 0"},
      {entry(f32, "[1]", "[0,7]"),
       "\"w\": shape (1,) of F32 does not take the 7 bytes from 0 to 7"},
      {entry(R"("F64")", "[2]", "[0,8]"),
       "\"w\": shape (2,) of F64 does not take the 8 bytes from 0 to 8"},
      // where its elements are
      {entry(f32, "[2]", "[8,0]"), "\"w\": data_offsets must be [begin, end]"},
      {entry(f32, "[2]", "[0]"), "\"w\": data_offsets must be [begin, end]"},
      {entry(f32, "[2]", "[0,8,8]"), "\"w\": data_offsets must be [begin, end]"},
      {entry(f32, "[2]", "[-8,0]"), "\"w\": data_offsets must hold integers in [0, 2^63), got -8"},
      {entry(f32, "[2]", "[0," + max + "]"),
       "\"w\": data_offsets must hold integers in [0, 2^63), got " + max},
      {entry(f32, "[2305843009213693951]", "[0,9223372036854775804]"),
       "\"w\" ends at byte 9223372036854775804, but 8 bytes follow the header"},
      {entry(f32, "[4]", "[0,16]"), "\"w\" ends at byte 16, but 8 bytes follow the header"},
      {entry(f32, "[2]", "[0,8]"), "bytes 8 to 9 at the end belong to no tensor", 9},
      {entry(f32, "[1]", "[4,8]"), "bytes 0 to 4 before \"w\" belong to no tensor"},
      {two_tensors("[0,4]", "[0,4]"),
       "\"b\" begins at byte 0, before the end of another tensor at 4", 4},
      {two_tensors("[0,4]", "[3,7]"),
       "\"b\" begins at byte 3, before the end of another tensor at 4", 7},
      {two_tensors("[0,4]", "[5,9]"), "bytes 4 to 5 before \"b\" belong to no tensor", 9},
      {"{}", "bytes 0 to 8 at the end belong to no tensor"},
  };
  for (const auto& [header, error, data] : rows) {
    const std::string begin = header.substr(0, 120);
    CAPTURE(begin);
    CHECK(error_of_bytes<SafetensorsError>(dir, file_with(header, data)) == error);
  }
}

TEST_CASE("a header of safetensors that does not fit its file is refused before it is read") {
  const TempDir dir;
  const auto with_length = [&](std::uint64_t length) {
    std::string bytes = file_with("{}", 0);
    std::memcpy(bytes.data(), &length, sizeof length);
    return error_of_bytes<SafetensorsError>(dir, bytes);
  };
  CHECK(with_length(3) == "its header of 3 bytes does not fit the file of 10");
  for (const std::uint64_t length :
       {std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}})
    CHECK(with_length(length) ==
          fmt::format("its header of {} bytes is longer than 100000000, the most that the format "
                      "allows",
                      length));
}

TEST_CASE("safetensors cut short anywhere are refused") {
  const TempDir dir;
  const std::string whole = safetensors_bytes(sample());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(error_of_bytes<Error>(dir, whole.substr(0, length)) != "no error");
  }
}

TEST_CASE("changed bytes of safetensors are refused or are other values, and never crash") {
  const TempDir dir;
  const std::string whole = safetensors_bytes(sample());
  std::mt19937_64 random(7);
  int refused = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    CAPTURE(i);
    std::vector<std::byte> bytes(whole.size());
    std::memcpy(bytes.data(), whole.data(), whole.size());
    mutate(bytes, random);
    refused += error_of_bytes<Error>(
                   dir, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}) != "no error";
  }
  CHECK(refused > Mutations::count() / 10);
}

TEST_CASE("names that safetensors cannot hold are refused") {
  CHECK(error_of<SafetensorsError>([] {
          safetensors_bytes({.tensors = {{"__metadata__", Tensor::scalar(1)}}, .metadata = {}});
        }) == "a tensor cannot be called __metadata__");
  CHECK(error_of<SafetensorsError>([] {
          safetensors_bytes({.tensors = {}, .metadata = {{"\xff", ""}}});
        }) == "names and texts must be UTF-8");
}

}  // namespace qkv::safetensors_test
