#include "train/storage/run_lock.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "core/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv::run_lock_test {
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator(stream), {}};
}

}  // namespace

TEST_CASE("a locked folder is refused with the process that holds it, until that lets go") {
  const TempDir dir;
  const auto folder = dir.path() / "run";
  {
    const RunLock lock(folder);
    CHECK(error_of<UserError>([&] { const RunLock second(folder); }) ==
          fmt::format("{} is being trained by process {}; wait for it or stop it", folder.string(),
                      ::getpid()));
  }
  CHECK(std::filesystem::is_empty(folder));
  const RunLock again(folder);
}

TEST_CASE("a lock dies with its process") {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(dir.path());
    ::_exit(0);  // without destructors, as when it is killed
  }
  ::waitpid(child, nullptr, 0);
  REQUIRE(std::filesystem::exists(dir.path() / "lock"));
  const RunLock lock(dir.path());
}

TEST_CASE("a lock that cannot be made is an error that names the folder") {
  const TempDir dir;
  const auto file = dir.write("file", "");
  CHECK(error_of<FileError>([&] {
          const RunLock lock(file / "run");
        }).starts_with("cannot create the run folder " + (file / "run").string() + ": "));
}

TEST_CASE("a lock that is a link is refused, and its target neither changed nor created") {
  const TempDir dir;
  const fs::path notes = dir.write("notes.txt", "mine\n"), none = dir.path() / "none.txt",
                 file = dir.path() / "run/lock";
  fs::create_directory(dir.path() / "run");
  for (const fs::path& target : {notes, none}) {
    fs::create_symlink(target, file);
    CHECK(error_of<UserError>([&] { const RunLock lock(dir.path() / "run"); }) ==
          file.string() + ": is a link, which is not followed; remove it");
    fs::remove(file);
  }
  CHECK(text_of(notes) == "mine\n");
  CHECK(!fs::exists(none));
}

TEST_CASE("a file that is no lock is refused and stays as it is") {
  const TempDir dir;
  const fs::path file = dir.path() / "lock", notes = dir.write("notes.txt", "12 apples\n");
  const auto refused = [&] {
    return error_of<UserError>([&] { const RunLock lock(dir.path()); })
        .starts_with(file.string() + ": is not the lock of a run; ");
  };
  fs::create_hard_link(notes, file);
  CHECK(refused());
  CHECK(text_of(notes) == "12 apples\n");
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0666) == 0);
  CHECK(refused());
}

TEST_CASE("a lock that was removed or replaced is not held, and the other's stays") {
  const TempDir dir;
  const fs::path folder = dir.path() / "run";
  std::optional<RunLock> first(std::in_place, folder);
  first->require_held();
  fs::remove_all(folder);
  const auto lost = [&] {
    return error_of<FileError>([&] { first->require_held(); })
        .starts_with((folder / "lock").string() + ": was removed or replaced");
  };
  CHECK(lost());
  const RunLock second(folder);
  CHECK(lost());
  first.reset();
  second.require_held();
}

}  // namespace qkv::run_lock_test
