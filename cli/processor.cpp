#include "cli/processor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/processor_features.h"
#include "core/error.h"
#include "core/platform.h"

namespace qkv {

const char* const processor_of_build = QKV_LEVEL;

// A macro that is not defined is its own name.
#define QKV_TEXT(value) #value
#define QKV_IS_USED(name, macro) QKV_TEXT(macro)[0] == '1',
constinit const bool used_features[] = {QKV_PROCESSOR_FEATURES(QKV_IS_USED)};
#undef QKV_IS_USED
#undef QKV_TEXT

namespace {

struct Level {
  std::string_view name;
  bool (*runs_here)();
};

#ifdef __x86_64__
#if defined(__clang__) && __clang_major__ < 18  // knows no levels
bool runs_v2() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}
/// Every processor with these has movbe, f16c and lzcnt, too.
bool runs_v3() {
  return runs_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool runs_v4() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#else
bool runs_v2() {
  return __builtin_cpu_supports("x86-64-v2") != 0;
}
bool runs_v3() {
  return __builtin_cpu_supports("x86-64-v3") != 0;
}
bool runs_v4() {
  return __builtin_cpu_supports("x86-64-v4") != 0;
}
#endif

/// Highest first.
constexpr Level levels[] = {{"x86-64-v4", runs_v4}, {"x86-64-v3", runs_v3}, {"x86-64-v2", runs_v2}};
#else
constexpr Level levels[] = {{QKV_LEVEL, [] { return true; }}};
#endif

/// The program of a level; empty where it is not installed.
std::filesystem::path program_of(std::string_view level) {
  std::error_code none;
  const auto self = std::filesystem::canonical(platform::program(), none);
  const auto program = self.parent_path().parent_path() / "libexec/qkv" / level / "qkv";
  return std::filesystem::exists(program, none) ? program : std::filesystem::path();
}

/// The levels that are installed and run here, highest first.
std::vector<std::string_view> levels_here() {
  std::vector<std::string_view> able;
  for (const auto& [name, runs_here] : levels) {
    const bool is_installed = name == processor_of_build || !program_of(name).empty();
    if (is_installed && runs_here()) able.push_back(name);
  }
  return able;
}

}  // namespace

std::string_view chosen_level(std::string_view own, std::string_view wanted,
                              std::span<const std::string_view> able) {
  const bool is_portable = std::ranges::find(able, own) != able.end();
  if (wanted.empty()) return is_portable ? able.front() : own;
  require<UserError>(wanted == own || std::ranges::find(able, wanted) != able.end(),
                     "QKV_CPU is {}, and this processor and this installation have {}", wanted,
                     able.empty() ? std::string(own) : fmt::format("{}", fmt::join(able, ", ")));
  return wanted;
}

void run_build_for_processor(char** argv) {
  const char* wanted = std::getenv("QKV_CPU");
  const std::string_view level =
      chosen_level(processor_of_build, wanted ? wanted : "", levels_here());
  if (level == processor_of_build) return;
  const std::string program = program_of(level).string();
  ::execv(program.c_str(), argv);
  throw std::system_error(errno, std::generic_category(), program);
}

}  // namespace qkv
