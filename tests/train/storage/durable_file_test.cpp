#include "train/storage/durable_file.h"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "core/error.h"
#include "tests/support/errors.h"
#include "tests/support/system_calls.h"
#include "tests/support/temp_dir.h"

using namespace qkv;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  return read_file(file, 1 << 20);
}

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

/// Lets no file grow beyond `bytes`, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE(
    "a result replaces a file of its kind, an empty one and none, through links, and no other") {
  const TempDir dir;
  const ResultKind kind = {"a list",
                           [](std::string_view text) { return text.starts_with("list"); }};
  const fs::path file = dir.path() / "f", link = dir.path() / "link", chain = dir.path() / "chain";
  fs::create_symlink("f", link);
  fs::create_symlink(link, chain);
  write_result(chain, "list 1", kind);  // where the links lead is no file yet
  CHECK(text_of(file) == "list 1");
  write_result(chain, "list 2", kind);
  CHECK(text_of(file) == "list 2");
  CHECK((fs::is_symlink(link) && fs::is_symlink(chain)));
  dir.write("f", "");
  write_result(file, "list 3", kind);
  CHECK(text_of(file) == "list 3");
  dir.write("f", "another");
  for (const fs::path& path : {file, chain})
    CHECK(error_of<UserError>([&] { write_result(path, "list 4", kind); }) ==
          path.string() + ": exists and is not a list; name another file, or remove it");
  CHECK(text_of(file) == "another");
  fs::create_symlink("loop", dir.path() / "loop");
  CHECK_THROWS_AS(write_result(dir.path() / "loop", "list", kind), FileError);
  CHECK_THROWS_AS(write_result(dir.path(), "list", kind), FileError);
}

TEST_CASE("a durable write replaces the file and leaves nothing beside it") {
  const TempDir dir;
  const fs::path file = dir.write("f", "old");
  write_durably(file, "new");
  CHECK(text_of(file) == "new");
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("contents are on the disk before the name is, and the name before the call returns") {
  const TempDir dir;
  const fs::path folder = fs::canonical(dir.path());
  const std::string file = folder / "f", name = folder / "g";
  const auto temporary = [](const std::string& of) {
    return fmt::format("{}.tmp.{}.0", of, ::getpid());
  };
  SystemCalls calls;
  write_durably(file, "text");
  link_durably(file, name);
  CHECK(calls.all() == std::vector<std::string>{
                           "write " + temporary(file), "fsync " + temporary(file),
                           "rename " + temporary(file) + " " + file, "unlink " + temporary(file),
                           "fsync " + folder.string(), "link " + file + " " + temporary(name),
                           "rename " + temporary(name) + " " + name, "unlink " + temporary(name),
                           "fsync " + folder.string()});
}

TEST_CASE("a write that fails half way leaves the old file and nothing beside it") {
  const TempDir dir;
  const fs::path file = dir.write("f", "old");
  std::string error;
  {
    const FileSizeLimit limit(1000);
    error = error_of<FileError>([&] { write_durably(file, std::string(100000, 'x')); });
  }
  CHECK(error ==
        file.string() +
            ": cannot write: File too large (100000 bytes needed, see `ulimit -f` for the limit)");
  CHECK(text_of(file) == "old");
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("lines are added to a file, and what keeps one out is named") {
  const TempDir dir;
  const fs::path file = dir.path() / "f";
  append(file, "a\n");
  append(file, "b\n");
  CHECK(text_of(file) == "a\nb\n");
  CHECK(error_of<FileError>([&] { append(dir.path(), "c\n"); }) ==
        dir.path().string() + ": cannot write: Is a directory");
  const FileSizeLimit limit(6);
  CHECK(error_of<FileError>([&] { append(file, "long\n"); }) ==
        file.string() + ": cannot write: File too large");
}

TEST_CASE("a write to a missing folder is an error that names it") {
  const TempDir dir;
  const fs::path file = dir.path() / "none" / "f";
  CHECK(error_of<FileError>([&] { write_durably(file, "x"); }) ==
        file.string() + ": cannot create a file beside it: No such file or directory");
}

TEST_CASE("a link keeps the contents when the first name is removed") {
  const TempDir dir;
  const fs::path file = dir.write("f", "text"), name = dir.write("g", "old");
  link_durably(file, name);
  link_durably(file, name);
  fs::remove(file);
  CHECK(text_of(name) == "text");
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("only regular files of a bounded size are read") {
  const TempDir dir;
  const fs::path file = dir.write("f", "1234"), pipe = dir.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of<UserError>([&] { read_file(file, 3); }) ==
        file.string() + ": holds 4 bytes; at most 3 can be read");
  CHECK(error_of<UserError>([&] { read_file(pipe, 3); }) == pipe.string() + ": is not a file");
  CHECK(error_of<UserError>([&] {
          read_file(dir.path() / "none", 3);
        }).ends_with("none: cannot read: No such file or directory"));
}
