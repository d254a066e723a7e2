#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>

namespace qkv {

/// The limits of a Linux control group, which containers, batch systems and systemd set; on other
/// systems there are none.
struct GroupLimits {
  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();  ///< bytes
  double cores = std::numeric_limits<double>::infinity();            ///< CPU time by elapsed time
};

/// The lowest limits of the groups named in `membership`, which has the format of
/// /proc/self/cgroup, and of all groups above them. Reads both versions of control groups below
/// `root`, where they are mounted. A group that a container does not show is skipped.
GroupLimits group_limits(std::string_view membership, const std::filesystem::path& root);
/// The limits of this process.
GroupLimits group_limits();

/// The cores that this process may use: those of its affinity mask, or fewer where a quota of CPU
/// time, which is rounded up, is lower.
int usable_cores(const GroupLimits& limits = group_limits());

}  // namespace qkv
