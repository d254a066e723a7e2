#include "core/control_group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "core/platform.h"
#include "tests/support/temp_dir.h"
#ifdef __linux__
#include <sched.h>
#endif

namespace qkv::tests {
namespace {

constexpr double any = std::numeric_limits<double>::infinity();
constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("version 2: the lowest limits of a process's group and of those above it hold") {
  const TempDir groups;
  groups.write("memory.max", "max");
  groups.write("batch/memory.max", "150000000");
  groups.write("batch/cpu.max", "max 100000");
  groups.write("batch/job/memory.max", "900000000");
  groups.write("batch/job/cpu.max", "40000 100000");
  groups.write("other/memory.max", "1");
  const GroupLimits limits = group_limits("0::/batch/job\n", groups.path());
  CHECK(limits.memory == 150000000);
  CHECK(limits.cores == doctest::Approx(0.4));
  CHECK(group_limits("0::/batch\n", groups.path()).cores == any);
  CHECK(group_limits("0::/\n", groups.path()).memory == all);
}

TEST_CASE("version 1: each kind of limit has a hierarchy of its own, beside one of version 2") {
  const TempDir groups;
  groups.write("memory/memory.limit_in_bytes", "9223372036854771712");
  groups.write("memory/job/memory.limit_in_bytes", "150000000");
  groups.write("cpu/job/cpu.cfs_quota_us", "250000");
  groups.write("cpu/job/cpu.cfs_period_us", "100000");
  groups.write("cpu/free/cpu.cfs_quota_us", "-1");
  groups.write("cpu/free/cpu.cfs_period_us", "100000");
  groups.write("unified/user/memory.max", "100000000");
  const GroupLimits limits =
      group_limits("4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/\n", groups.path());
  CHECK(limits.memory == 150000000);
  CHECK(limits.cores == doctest::Approx(2.5));
  CHECK(group_limits("3:cpu:/free\n", groups.path()).cores == any);
  CHECK(group_limits("4:memory:/job\n0::/user\n", groups.path()).memory == 100000000);
}

TEST_CASE("a container that does not show the path of its group has the limits of its root") {
  const TempDir groups;
  groups.write("memory.max", "150000000");
  groups.write("cpu.max", "100000 100000");
  const GroupLimits limits = group_limits("0::/docker/0123456789ab\n", groups.path());
  CHECK(limits.memory == 150000000);
  CHECK(limits.cores == 1);
}

TEST_CASE("without control groups, or with files that hold no limit, there are none") {
  const TempDir groups;
  for (const char* text : {"", "max", "0 0", "none at all", "100000"}) {
    groups.write("cpu.max", text);
    for (const char* membership : {"", "\n", "0::", "0::/a:b/c\n", "no group"}) {
      CHECK(group_limits(membership, groups.path()).cores == any);
      CHECK(group_limits(membership, groups.path()).memory == all);
    }
  }
  CHECK(group_limits().memory > 0);
}

TEST_CASE("the usable cores are those of the affinity mask, or a quota rounded up") {
  CHECK(usable_cores({}) == static_cast<int>(platform::cores().count()));
  CHECK(usable_cores({.cores = 0.4}) == 1);
  CHECK(usable_cores({.cores = 1}) == 1);
  CHECK(usable_cores({.cores = 1.2}) == std::min(2, usable_cores({})));
#ifdef __linux__
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t i = 0; CPU_COUNT(&one) == 0; ++i)
      if (platform::cores()[i]) CPU_SET(i, &one);
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(usable_cores({}) == 1);
  }).join();
#endif
}

}  // namespace qkv::tests
