#include "core/control_group.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "core/platform.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

/// A limit in bytes. No limit is "max" in version 2, and in version 1 more than a machine has.
std::uint64_t bytes_in(const fs::path& file) {
  std::ifstream stream(file);
  std::uint64_t bytes = 0;
  return stream >> bytes ? bytes : GroupLimits().memory;
}

/// CPU time by the period that it is for. No limit is "max" in version 2 and -1 in version 1.
double cores_in(std::istream& time, std::istream& period) {
  double used = 0, elapsed = 0;
  const bool limited = time >> used && period >> elapsed && used > 0 && elapsed > 0;
  return limited ? used / elapsed : GroupLimits().cores;
}

/// The limits in the folder of a group, whose files tell the version.
GroupLimits limits_in(const fs::path& group) {
  std::ifstream both(group / "cpu.max");
  std::ifstream time(group / "cpu.cfs_quota_us"), period(group / "cpu.cfs_period_us");
  return {std::min(bytes_in(group / "memory.max"), bytes_in(group / "memory.limit_in_bytes")),
          std::min(cores_in(both, both), cores_in(time, period))};
}

/// Lowers `limits` to those of a group and of all groups above it.
void lower(GroupLimits& limits, const fs::path& hierarchy, fs::path group) {
  for (group = group.relative_path();; group = group.parent_path()) {
    const auto [memory, cores] = limits_in(hierarchy / group);
    limits = {std::min(limits.memory, memory), std::min(limits.cores, cores)};
    if (group.empty()) return;
  }
}

}  // namespace

GroupLimits group_limits(std::string_view membership, const fs::path& root) {
  GroupLimits limits;
  std::istringstream lines{std::string(membership)};
  std::string number, controllers, group;
  while (std::getline(lines, number, ':') && std::getline(lines, controllers, ':') &&
         std::getline(lines, group)) {
    // Version 2 has one hierarchy, beside those of version 1 in "unified".
    if (controllers.empty()) {
      for (const char* name : {"", "unified"}) lower(limits, root / name, group);
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) lower(limits, root / name, group);
  }
  return limits;
}

GroupLimits group_limits() {
  std::ifstream membership("/proc/self/cgroup");
  return group_limits(std::string(std::istreambuf_iterator(membership), {}), "/sys/fs/cgroup");
}

int usable_cores(const GroupLimits& limits) {
  const auto cores = static_cast<double>(platform::cores().count());
  return static_cast<int>(std::min(cores, std::ceil(limits.cores)));
}

}  // namespace qkv
