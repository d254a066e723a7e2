#include "train/storage/checkpoint.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/mutations.h"
#include "tests/support/temp_dir.h"
#include "train/storage/content_hash.h"
#include "train/storage/durable_file.h"
#include "train/storage/hdf5.h"
#include "train/storage/hdf5_reader.h"
#include "train/storage/seal.h"

using namespace qkv;
namespace fs = std::filesystem;

namespace {

Checkpoint sample_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.step = 500;
  checkpoint.config = "name = \"bank\"\n";
  checkpoint.model["encoder.w_q.weight"] = Tensor::from({1.0f, -2.5f, 3.0f, 0.1f}, {2, 2});
  checkpoint.model["head.bias"] = Tensor::from({1.0, 1e-300}, {2});
  checkpoint.optimizer["first_moment.head.bias"] = Tensor::scalar(0.25, DType::float64);
  checkpoint.vocabulary["tokens"] = {"<pad>", "<unk>", "केक", "bank"};
  checkpoint.progress["best_loss"] = std::numeric_limits<double>::infinity();
  checkpoint.metrics = "{\"step\": 1}\n";
  return checkpoint;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.values() == b.values();
}

bool same(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && same(x.second, y.second);
  });
}

std::string bytes_of(const fs::path& file) {
  return read_file(file, 1 << 24);
}

/// The error of reading the bytes as a checkpoint, without the file's name.
std::string error_of_bytes(const TempDir& dir, std::string_view bytes) {
  const fs::path file = dir.write("c.h5", bytes);
  const std::string error = error_of<Error>([&] { read_checkpoint(file); });
  return error.starts_with(file.string() + ": ") ? error.substr(file.string().size() + 2) : error;
}

/// A sealed file that holds what `fill` puts into it.
template <class Fill>
std::string sealed(Fill fill) {
  const hdf5::File file;
  fill(file.root());
  const auto content = file.image();
  return std::string(reinterpret_cast<const char*>(content.data()), content.size()) +
         seal_of(content);
}

/// A sealed checkpoint without tensors, with what `fill` puts into its progress and vocabulary.
template <class Fill>
std::string sealed_checkpoint(Fill fill) {
  return sealed([&](hdf5::Group root) {
    root.write_attribute("format", "qkv-checkpoint");
    root.write_attribute("version", 1);
    root.write_attribute("qkv_version", QKV_VERSION);
    root.write_attribute("step", 1);
    root.write_attribute("config", "");
    for (const char* name : {"model", "optimizer"}) root.make_group(name);
    hdf5::Group progress = root.make_group("progress");
    progress.write_text("metrics", "");
    hdf5::Group vocabulary = root.make_group("vocabulary");
    fill(progress, vocabulary);
  });
}

/// A sealed checkpoint whose tokens are stored by their offsets.
std::string with_tokens(const std::string& data, const std::vector<std::int64_t>& offsets) {
  return sealed_checkpoint([&](hdf5::Group&, hdf5::Group& vocabulary) {
    hdf5::Group tokens = vocabulary.make_group("tokens");
    tokens.write_text("data", data);
    tokens.write_integers("offsets", offsets);
  });
}

}  // namespace

TEST_CASE("a checkpoint is read as it was written, bit for bit") {
  const TempDir dir;
  const Checkpoint written = sample_checkpoint();
  write_checkpoint(dir.path() / "c.h5", written);
  const Checkpoint read = read_checkpoint(dir.path() / "c.h5");
  CHECK(read.step == written.step);
  CHECK(read.config == written.config);
  CHECK(same(read.model, written.model));
  CHECK(same(read.optimizer, written.optimizer));
  CHECK(read.vocabulary == written.vocabulary);
  CHECK(read.progress == written.progress);
  CHECK(read.metrics == written.metrics);
}

TEST_CASE("without the optimizer, the rest of a checkpoint is read as it was written") {
  const TempDir dir;
  const Checkpoint written = sample_checkpoint();
  REQUIRE(!written.optimizer.empty());
  write_checkpoint(dir.path() / "c.h5", written);
  const Checkpoint read = read_checkpoint(dir.path() / "c.h5", CheckpointPart::without_optimizer);
  CHECK(read.optimizer.empty());
  CHECK(same(read.model, written.model));
  CHECK(read.vocabulary == written.vocabulary);
  CHECK(read.progress == written.progress);
}

TEST_CASE("equal checkpoints make equal files") {
  const TempDir dir;
  write_checkpoint(dir.path() / "a.h5", sample_checkpoint());
  write_checkpoint(dir.path() / "b.h5", sample_checkpoint());
  CHECK(bytes_of(dir.path() / "a.h5") == bytes_of(dir.path() / "b.h5"));
}

TEST_CASE("a file's bytes do not depend on the version of HDF5") {
  const std::string written = sealed([](hdf5::Group root) {
    root.write_attribute("step", 3);
    hdf5::Group group = root.make_group("model");
    for (int i = 0; i < 50; ++i)
      group.write_tensor(fmt::format("w{}", i), Tensor::full({2, 3}, 0.5, DType::float64));
    group.write_integers("offsets", std::vector<std::int64_t>{0, 4, 9});
    group.write_text("text", "केक");
  });
  ContentHash hash;
  hash.add(std::as_bytes(std::span(written)));
  CHECK(hash.text() == "47a00eb108b9f163b259c871db33e7ed");
}

TEST_CASE("a group of many parameters, deep paths and every rank are read as they were written") {
  const TempDir dir;
  Checkpoint written = sample_checkpoint();
  for (int i = 0; i < 700; ++i)
    written.model[fmt::format("layers.{}.w", i)] = Tensor::full({2}, static_cast<double>(i));
  std::string path = "deep";
  for (int i = 0; i < 40; ++i) path += fmt::format(".level_{}", i);
  written.model[path] = Tensor::zeros({1, 2, 1, 2});
  written.model["empty"] = Tensor::zeros({0, 3});
  write_checkpoint(dir.path() / "c.h5", written);
  CHECK(same(read_checkpoint(dir.path() / "c.h5").model, written.model));
}

TEST_CASE("a config of any length is read as it was written, up to 65496 bytes as an attribute") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  for (const std::size_t length : {0U, 65496U, 65497U, 65503U, 65504U, 65536U, 1U << 20}) {
    CAPTURE(length);
    Checkpoint written = sample_checkpoint();
    written.config = std::string(length, 'x');
    write_checkpoint(file, written);
    CHECK(read_checkpoint(file).config == written.config);
    const auto bytes = read_file(file, 1 << 24);
    const auto content = unseal(std::as_bytes(std::span(bytes)));
    CHECK(hdf5::read(content).attributes.contains("config") == (length <= 65496));
  }
}

TEST_CASE("a long token costs its own bytes, not those of the vocabulary") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  Checkpoint written = sample_checkpoint();
  std::vector<std::string>& tokens = written.vocabulary["tokens"];
  for (int i = 0; i < 20000; ++i) tokens.push_back(fmt::format("token{}", i));
  tokens.emplace_back("");
  tokens.push_back(std::string(65536, 'x'));
  tokens.emplace_back("last");
  write_checkpoint(file, written);
  CHECK(read_checkpoint(file).vocabulary == written.vocabulary);
  CHECK(fs::file_size(file) < 1 << 20);  // 1.3 GB as a padded table
}

TEST_CASE("offsets of tokens that do not ascend from 0 to the end of their data are refused") {
  const TempDir dir;
  using Offsets = std::vector<std::int64_t>;
  for (const Offsets& offsets : {Offsets{}, {0, 3}, {1, 4}, {0, 3, 2, 4}, {0, -1, 4}, {0, 5, 4}}) {
    CAPTURE(offsets.size());
    CHECK(error_of_bytes(dir, with_tokens("abcd", offsets)) ==
          "/vocabulary/tokens: offsets must ascend from 0 to the 4 bytes of data");
  }
  CHECK(error_of_bytes(dir, with_tokens("abcd", {0, 0, 3, 4})) == "no error");
}

TEST_CASE("a step outside of [0, 2^53] is refused") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  for (const std::int64_t step :
       {std::int64_t{-1}, (std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::min()}) {
    Checkpoint written = sample_checkpoint();
    written.step = step;
    write_checkpoint(file, written);
    CHECK(error_of<CheckpointError>([&] { read_checkpoint(file); }) ==
          fmt::format("{}: /step: must be in [0, 2^53], got {}", file.string(), step));
  }
}

TEST_CASE("what is no checkpoint is refused without reading it, however long it is") {
  const TempDir dir;
  const fs::path file = dir.write("huge.h5", "");
  fs::resize_file(file, std::uintmax_t{1} << 42);
  CHECK(error_of<UserError>([&] { read_checkpoint(file); }) ==
        file.string() + ": is not a qkv checkpoint");
  append(file, seal_of(std::vector<std::byte>(100)));
  CHECK(error_of<CheckpointError>([&] {
          read_checkpoint(file);
        }).starts_with(file.string() + ": is damaged: 4398046511104 bytes lie before"));
}

TEST_CASE("an empty checkpoint and empty texts can be stored") {
  const TempDir dir;
  Checkpoint empty;
  empty.vocabulary["tokens"] = {""};
  write_checkpoint(dir.path() / "c.h5", empty);
  CHECK(read_checkpoint(dir.path() / "c.h5").vocabulary == empty.vocabulary);
}

TEST_CASE("a checkpoint cut short anywhere is refused") {
  const TempDir dir;
  write_checkpoint(dir.path() / "whole.h5", sample_checkpoint());
  const std::string whole = bytes_of(dir.path() / "whole.h5");
  CHECK(error_of_bytes(dir, "") == "is empty");
  CHECK(error_of_bytes(dir, whole.substr(0, whole.size() / 2))
            .starts_with(fmt::format("is truncated: it holds {} bytes, {} were written",
                                     whole.size() / 2, whole.size())));
  for (std::size_t length = 0; length < whole.size(); length += 97) {
    CAPTURE(length);
    CHECK(error_of_bytes(dir, whole.substr(0, length)) != "no error");
  }
  CHECK(error_of_bytes(dir, whole.substr(0, whole.size() - 1)) != "no error");
}

TEST_CASE("a checkpoint with any bit flipped is refused") {
  const TempDir dir;
  write_checkpoint(dir.path() / "whole.h5", sample_checkpoint());
  std::string bytes = bytes_of(dir.path() / "whole.h5");
  for (std::size_t i = 0; i < bytes.size(); i += i + 200 < bytes.size() ? 61 : 1) {
    CAPTURE(i);
    const char before = bytes[i];
    bytes[i] = static_cast<char>(before ^ (1 << (i % 8)));
    CHECK(error_of_bytes(dir, bytes) != "no error");
    bytes[i] = before;
  }
  CHECK(error_of_bytes(dir, bytes) == "no error");
}

TEST_CASE("what is no checkpoint is refused by name") {
  const TempDir dir;
  CHECK(error_of_bytes(dir, std::string(5000, 'x')) == "is not a qkv checkpoint");
  CHECK(error_of_bytes(dir, sealed([](hdf5::Group) {})).starts_with("/format: cannot find"));
  CHECK(error_of_bytes(dir, sealed([](hdf5::Group root) {
                         root.write_attribute("format", "other");
                       })) == "is not a qkv checkpoint");
  CHECK(error_of_bytes(dir, sealed([](hdf5::Group root) {
                         root.write_attribute("format", "qkv-checkpoint");
                         root.write_attribute("version", 2);
                         root.write_attribute("qkv_version", "9.0");
                       })) == fmt::format("has version 2 of the format, by qkv 9.0; this is qkv "
                                          "{}, which reads version 1",
                                          QKV_VERSION));
}

TEST_CASE("a damaged checkpoint is distinguished from another kind of file") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  write_checkpoint(file, sample_checkpoint());
  const std::string whole = bytes_of(file);
  for (const std::string& damaged : {std::string(), whole.substr(0, 5), whole.substr(0, 5000),
                                     whole.substr(0, whole.size() - 1), "x" + whole.substr(1)}) {
    CAPTURE(damaged.size());
    dir.write("c.h5", damaged);
    CHECK_THROWS_AS(read_checkpoint(file), CheckpointError);
  }
  dir.write("c.h5", "name = \"bank\"\n");
  CHECK_THROWS_AS(read_checkpoint(file), UserError);
  CHECK_THROWS_AS(read_checkpoint(dir.path() / "none.h5"), UserError);
}

TEST_CASE("wrong metadata behind a right seal are refused or mean the same, and never crash") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  SUBCASE("a sample") {
    write_checkpoint(file, sample_checkpoint());
  }
  SUBCASE("tokens by their offsets") {
    dir.write("c.h5", with_tokens("<pad><unk>bank", {0, 5, 10, 14}));
  }
  Mutations mutations(file);
  int refused = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    CAPTURE(i);
    mutations.write_next(file);
    refused += error_of<Error>([&] { read_checkpoint(file); }) != "no error";
  }
  CHECK(refused > Mutations::count() / 10);
}

TEST_CASE("names and texts that the format cannot hold are refused before anything is written") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  for (const char* name : {"", ".", "a..b", "a/b"}) {
    CAPTURE(name);
    Checkpoint checkpoint;
    checkpoint.model[name] = Tensor::scalar(1.0, DType::float32);
    CHECK_THROWS_AS(write_checkpoint(file, checkpoint), CheckpointError);
  }
  Checkpoint checkpoint;
  checkpoint.vocabulary["tokens"] = {std::string("a\0b", 3)};
  CHECK_THROWS_AS(write_checkpoint(file, checkpoint), CheckpointError);
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("names that the format cannot hold are refused behind a right seal, too") {
  const TempDir dir;
  const auto error = [&](auto fill) { return error_of_bytes(dir, sealed_checkpoint(fill)); };
  CHECK(error([](hdf5::Group& progress, hdf5::Group&) {
          progress.write_tensor("best.loss", Tensor::scalar(1.0, DType::float64));
        }) == "'best.loss' is not a name for a checkpoint's contents");
  CHECK(error([](hdf5::Group&, hdf5::Group& vocabulary) {
          vocabulary.write_texts("to.kens", std::vector<std::string>{"a"});
        }) == "'to.kens' is not a name for a checkpoint's contents");
}

TEST_CASE("a writer killed at any moment leaves a complete checkpoint") {
  const TempDir dir;
  const fs::path file = dir.path() / "c.h5";
  Checkpoint checkpoint = sample_checkpoint();
  write_checkpoint(file, checkpoint);
  for (int round = 0; round < 20; ++round) {
    const pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0)
      for (;;) ++checkpoint.step, write_checkpoint(file, checkpoint);
    usleep(static_cast<useconds_t>(1000 + 700 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    CHECK(read_checkpoint(file).step >= 500);
  }
}
