#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "core/parallel.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/shrink.h"
#include "tests/ops/check.h"

namespace qkv::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned most_seconds_a_case = 60;

struct Options {
  std::uint64_t seed = 1, first = 0, cases = std::numeric_limits<std::uint64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  std::string torch;  ///< path of torch_side.py; empty: without PyTorch
};

/// Results that a worker leaves behind, also when it crashes.
struct Board {
  std::uint64_t index = 0;         ///< of the case that it works at
  std::uint64_t counts[128] = {};  ///< cases by family
};

/// Memory that outlives a forked process.
template <class T>
class Shared {
 public:
  Shared()
      : memory_(
            mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    require<ValueError>(memory_ != MAP_FAILED, "[fuzz] no shared memory");
    new (memory_) T;
  }
  ~Shared() { munmap(memory_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

/// The families of cases, in a fixed order.
std::vector<std::string> families() {
  std::vector<std::string> names = {"graph", "optimizer"};
  for (const auto* draws : {&module_draws(), &op_draws()})
    for (const auto& [name, draw] : *draws) names.push_back(name);
  return names;
}

std::size_t family_of(const std::vector<std::string>& names, const std::string& family) {
  return static_cast<std::size_t>(std::ranges::find(names, family) - names.begin());
}

/// Runs `work` in another process; gives its exit status, or what killed it.
template <class Work>
int forked(Work work) {
  std::fflush(stdout);
  const pid_t child = fork();
  require<ValueError>(child >= 0, "[fuzz] cannot fork");
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string signal_of(int status) {
  const int signal = WTERMSIG(status);
  return signal == SIGALRM ? fmt::format("it takes longer than {} s", most_seconds_a_case)
                           : fmt::format("it ends with {}", strsignal(signal));
}

/// How a failure is told from others while it shrinks.
std::string kind_of(const Failure& failure) {
  if (!failure.message.empty()) return failure.what + failure.message.substr(0, 6);
  const bool special = !std::isfinite(failure.got) || !std::isfinite(failure.expected);
  return failure.what.substr(0, 6) + (special ? " special" : " value");
}

/// `check` in a process of its own, so that a crash is a failure as well.
std::optional<Failure> guarded(const Case& sample, const TorchSide* torch) {
  struct Found {
    bool failed = false;
    DType dtype = DType::float32;
    char what[64] = {}, message[256] = {};
    Index element = 0;
    double got = 0, expected = 0, bound = 0;
  };
  const Shared<Found> found;
  const int status = forked([&] {
    alarm(most_seconds_a_case);
    if (const auto failure = check(sample, torch)) {
      found->failed = true;
      found->dtype = failure->dtype;
      failure->what.copy(found->what, sizeof(found->what) - 1);
      failure->message.copy(found->message, sizeof(found->message) - 1);
      found->element = failure->element;
      found->got = failure->got;
      found->expected = failure->expected;
      found->bound = failure->bound;
    }
    return 0;
  });
  if (WIFSIGNALED(status)) return Failure{DType::float32, "call", 0, 0, 0, 0, signal_of(status)};
  if (!found->failed) return {};
  return Failure{found->dtype,    found->what,  found->element, found->got,
                 found->expected, found->bound, found->message};
}

using Check = std::function<std::optional<Failure>(const Case&)>;

/// Prints a case that fails, as small as it gets.
void report(std::uint64_t seed, std::uint64_t index, const std::string& when, const Check& check) {
  Draw draw(seed, index);
  draw_case(draw);
  const Case sample = shrunk(draw.choices(), [&](const Case& smaller) {
    const auto failure = check(smaller);
    return failure ? kind_of(*failure) : std::string();
  });
  const auto failure = check(sample);
  fmt::print("\nTEST_CASE(\"fuzz: {}, seed {}, case {}\") {{  // {}\n", sample.family, seed, index,
             when);
  if (failure)
    fmt::print("  // {}\n{}}}\n", summary_of(*failure), code_of(sample, *failure));
  else
    fmt::print("  // fails only after the cases before it\n}}\n");
  std::fflush(stdout);
}

int fuzz(const Options& options) {
  const Clock::time_point start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const auto names = families();
  std::optional<TorchSide> side;
  if (!options.torch.empty()) side.emplace(options.torch);
  const TorchSide* torch = side && !side->version().empty() ? &*side : nullptr;
  const Shared<Board> board;
  board->index = options.first;
  std::uint64_t failures = 0, crashes = 0;
  const std::uint64_t end =
      options.cases > std::numeric_limits<std::uint64_t>::max() - options.first
          ? options.cases
          : options.first + options.cases;
  std::map<std::string, int> reported;
  while (board->index < end && seconds() < options.seconds) {
    const int status = forked([&] {
      for (; board->index < end && seconds() < options.seconds; ++board->index) {
        alarm(most_seconds_a_case);
        Draw draw(options.seed, board->index);
        const Case sample = draw_case(draw);
        if (sample.steps.empty()) continue;
        ++board->counts[family_of(names, sample.family)];
        if (check(sample, torch)) return 1;
      }
      return 0;
    });
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    ++failures;
    crashes += WIFSIGNALED(status) ? 1 : 0;
    Draw draw(options.seed, board->index);
    if (reported[draw_case(draw).family]++ < 2) {
      const std::string when = fmt::format("after {:.1f} s", seconds());
      fmt::print(stderr, "seed {}, case {} fails {}, and is made smaller\n", options.seed,
                 board->index, when);
      // In a process of its own; what crashes while it shrinks is checked in a process for each
      // try.
      const int ended = WIFSIGNALED(status) ? status : forked([&] {
        report(options.seed, board->index, when,
               [&](const Case& sample) { return check(sample, torch); });
        return 0;
      });
      if (WIFSIGNALED(ended))
        report(options.seed, board->index, when,
               [&](const Case& sample) { return guarded(sample, torch); });
    }
    ++board->index;
  }
  std::uint64_t cases = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    fmt::print("{}{:<34}{:>8}", i % 2 ? "   " : "\n", names[i], board->counts[i]);
    cases += board->counts[i];
  }
  fmt::print("\n\nseed {}: {} cases in {:.0f} s, {} wrong, {} of them crashes; {}\n", options.seed,
             cases, seconds(), failures, crashes, torch ? torch->version() : "PyTorch skipped");
  for (const auto& [family, count] : reported) fmt::print("  {}: {}\n", family, count);
  return failures ? 1 : 0;
}

Options parsed(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const auto value = [&] {
      require<ValueError>(i + 1 < count, "[fuzz] {} needs a value", name);
      return std::string(arguments[++i]);
    };
    if (name == "--seed")
      options.seed = std::stoull(value());
    else if (name == "--seconds")
      options.seconds = std::stod(value());
    else if (name == "--cases")
      options.cases = std::stoull(value());
    else if (name == "--torch")
      options.torch = value();
    else if (name == "--first")
      options.first = std::stoull(value());
    else
      throw ValueError(fmt::format("[fuzz] unknown option {}", name));
  }
  return options;
}

}  // namespace
}  // namespace qkv::fuzz

int main(int count, char** arguments) try {
  qkv::set_threads(1);  // so that forked processes have all there is
  return qkv::fuzz::fuzz(qkv::fuzz::parsed(count, arguments));
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
