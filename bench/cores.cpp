// How the time of a training step falls with the number of cores, by a model from measured parts:
//
//     qkv_cores_bench [CONFIG...]
//
// A step is computed by one thread, chunk after chunk, and every chunk of every parallel loop is
// timed. For n cores the model divides each loop's chunks among n threads as the thread pool does,
// and takes the thread that ends last; what is outside loops stays as it is. To start and end a
// loop costs what two threads need for an empty one here, times n / 2. The model knows nothing of
// caches and memory that cores share. The step is also measured with two threads, which the model
// should predict.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/memory.h"
#include "core/parallel.h"
#include "optim/clip.h"
#include "train/config/config.h"
#include "train/loop/step.h"

namespace {

using namespace qkv;
using Clock = std::chrono::steady_clock;
using Call = void (*)(const void*, Index);

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// The parts of a step, in microseconds.
struct Trace {
  double serial = 0;                       ///< outside parallel loops
  std::vector<std::vector<double>> loops;  ///< the chunks of each
};

/// While a step is traced.
struct Recorder {
  Trace trace;
  Clock::time_point mark = Clock::now();  ///< the end of the last loop
  bool in_loop = false;
};
std::optional<Recorder> recorder;

}  // namespace

// The linker replaces calls of detail::parallel (--wrap).
void library_parallel(Index count, Call call,
                      const void* f) asm("__real__ZN3qkv6detail8parallelElPFvPKvlES2_");
void parallel_or_traced(Index count, Call call,
                        const void* f) asm("__wrap__ZN3qkv6detail8parallelElPFvPKvlES2_");

void parallel_or_traced(Index count, Call call, const void* f) {
  if (!recorder) return library_parallel(count, call, f);
  if (recorder->in_loop) {  // as the library runs nested loops
    for (Index i = 0; i < count; ++i) call(f, i);
    return;
  }
  recorder->in_loop = true;
  recorder->trace.serial += microseconds_since(recorder->mark);
  auto& chunks = recorder->trace.loops.emplace_back();
  for (Index i = 0; i < count; ++i) {
    const auto start = Clock::now();
    call(f, i);
    chunks.push_back(microseconds_since(start));
  }
  recorder->mark = Clock::now();
  recorder->in_loop = false;
}

namespace {

/// A run's training steps.
class Steps {
 public:
  explicit Steps(const std::string& path) : run_(start_run(config(path))) {}

  void one() {
    StepGradients now = stepper_.gradients();
    clip_norm(now.gradients, run_.config.train.clip);
    run_.optimizer->step(run_.parameters, now.gradients, run_.config.optimizer.lr, run_.step);
    ++run_.step;
  }

 private:
  static Config config(const std::string& path) {
    std::ifstream file(path);
    return parse_config(std::string(std::istreambuf_iterator<char>(file), {}), path);
  }

  MemoryPool pool_;
  MemoryPool::Use use_{pool_};
  Run run_;
  Stepper stepper_{run_};
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

double step_us(Steps& steps) {
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 20 || microseconds_since(begin) < 1e6) {
    const auto start = Clock::now();
    steps.one();
    times.push_back(microseconds_since(start));
  }
  return median(times);
}

/// Each part is the median of several steps, as they would be computed for `threads` threads.
Trace traced(Steps& steps, int threads) {
  set_threads(threads);
  std::vector<Trace> traces;
  for (int i = 0; i < 31; ++i) {
    recorder.emplace();
    steps.one();
    recorder->trace.serial += microseconds_since(recorder->mark);
    traces.push_back(std::move(recorder->trace));
    recorder.reset();
  }
  const auto typical = [&](const auto& part) {
    std::vector<double> values;
    values.reserve(traces.size());
    for (const Trace& trace : traces) values.push_back(part(trace));
    return median(std::move(values));
  };
  Trace result{typical([](const Trace& trace) { return trace.serial; }), traces.front().loops};
  for (std::size_t i = 0; i < result.loops.size(); ++i)
    for (std::size_t j = 0; j < result.loops[i].size(); ++j)
      result.loops[i][j] = typical([=](const Trace& trace) { return trace.loops[i][j]; });
  return result;
}

/// When the last of `count` threads ends: each begins with its part of the chunks, and the first
/// that is idle takes the next of another's.
double makespan(const std::vector<double>& chunks, int count) {
  const auto threads = static_cast<std::size_t>(count);
  const Chunks split{std::ssize(chunks), count};
  std::vector<Index> next(threads);
  for (std::size_t i = 0; i < threads; ++i) next[i] = split.begin(static_cast<Index>(i));
  std::vector<double> busy_until(threads);
  for (std::size_t done = 0; done < chunks.size();) {
    const auto thread =
        static_cast<std::size_t>(std::ranges::min_element(busy_until) - busy_until.begin());
    for (std::size_t i = 0; i < threads; ++i) {
      const std::size_t owner = (thread + i) % threads;
      if (next[owner] == split.end(static_cast<Index>(owner))) continue;
      busy_until[thread] += chunks[static_cast<std::size_t>(next[owner]++)];
      ++done;
      break;
    }
  }
  return std::ranges::max(busy_until);
}

/// Of two threads, for a loop that does nothing.
double empty_loop_us() {
  constexpr int loops = 20000;
  set_threads(2);
  const auto start = Clock::now();
  for (int i = 0; i < loops; ++i) parallel_for(16, [](Index) {});
  return microseconds_since(start) / loops;
}

double predicted_us(const Trace& trace, int cores, double empty_loop) {
  double time = trace.serial;
  for (const auto& chunks : trace.loops) time += makespan(chunks, cores) + empty_loop * cores / 2;
  return time;
}

constexpr std::array cores = {2, 4, 8, 16};

void print_row(const std::string& path, double empty_loop) {
  Steps steps(path);
  set_threads(1);
  const double one = step_us(steps);
  set_threads(2);
  const double two = step_us(steps);
  fmt::print("| {} | {:.2f} | {:.2f} |", std::filesystem::path(path).stem().string(), one / 1e3,
             two / 1e3);
  for (const int n : cores) {
    const double time = predicted_us(traced(steps, n), n, empty_loop);
    fmt::print(" {:.2f} ({:.2f}) |", time / 1e3, one / time / n);
  }
  fmt::print("\n");
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> paths(words + 1, words + count);
  if (paths.empty())
    for (const auto* name : {"toy", "small", "baby", "medium", "long"})
      paths.push_back(fmt::format(QKV_SOURCE_DIR "/configs/bench/{}.toml", name));
  const double empty_loop = empty_loop_us();
  fmt::print("Two threads need {:.2f} us for an empty loop.\n\n", empty_loop);
  fmt::print("| config | 1 core, measured | 2 cores, measured |");
  for (const int n : cores) fmt::print(" {}, the model |", n);
  fmt::print("\n|---");
  for (std::size_t i = 0; i < 2 + cores.size(); ++i) fmt::print("|---:");
  fmt::print("|\n");
  for (const std::string& path : paths) print_row(path, empty_loop);
}
