#include "train/storage/run_lock.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

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
