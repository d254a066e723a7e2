// Checks of the machine before everything else, the constructors of libraries included, compiled
// for the oldest processors (cli/CMakeLists.txt).
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

#include "cli/processor_features.h"

namespace {

void require_limit(decltype(RLIMIT_AS) resource, rlim_t least, const char* needed) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= least) return;
  ::dprintf(STDERR_FILENO, "qkv: needs %s\n", needed);
  ::_exit(1);
}

#ifdef __x86_64__
struct Feature {
  const char* name;
  bool is_here;
};

/// An instruction that the processor does not have would end the program without a word.
void require_processor() {
  __builtin_cpu_init();
#define QKV_FEATURE(name, macro) {name, __builtin_cpu_supports(name) != 0},
  const Feature features[] = {QKV_PROCESSOR_FEATURES(QKV_FEATURE)};
#undef QKV_FEATURE
  for (std::size_t i = 0; const auto& [name, is_here] : features) {
    if (!qkv::used_features[i++] || is_here) continue;
    ::dprintf(STDERR_FILENO,
              "qkv: this build needs %s, which this processor does not have; build qkv on this "
              "machine, or with -DQKV_PORTABLE=ON for any x86-64-v2 processor\n",
              name);
    ::_exit(1);
  }
}
#else
void require_processor() {}
#endif

void check_machine() {
  require_processor();
  // OpenBLAS, as it is loaded, tries for ever to allocate its buffers in a small address space.
  require_limit(RLIMIT_AS, rlim_t{512} << 20,
                "at least 512 MiB of address space; raise the limit (ulimit -v)");
  // The system would kill a program whose stack is too small without a message.
  require_limit(RLIMIT_STACK, rlim_t{128} << 10,
                "a stack of at least 128 KiB; raise the limit (ulimit -s)");
}

#ifdef __GLIBC__
[[gnu::used, gnu::section(".preinit_array")]] void (*const at_start)() = check_machine;
#else
/// After the libraries have started, but before the program's own constructors.
[[gnu::constructor(101)]] void at_start() {
  check_machine();
}
#endif

}  // namespace
