#include "core/parallel.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/memory.h"

namespace qkv {
namespace {

using Call = void (*)(const void*, Index);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Threads that share out the pieces of one job at a time. Whoever is awake takes the next piece,
/// the caller among them, so that a thread that the system has put aside holds nobody up.
class Team {
  // state_: number of the job, its pieces, and how many of them are taken.
  static constexpr int count_shift = 20, job_shift = 40;
  static constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_shift) - 1;

 public:
  static constexpr auto most_pieces = static_cast<Index>(count_mask);

  explicit Team(int size) {
    for (int i = 1; i < size; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Team() {
    stopping_ = true;
    ring();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  void run(Index count, Call call, const void* f) {
    call_ = call;
    f_ = f;
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t job = (state_.load(std::memory_order_relaxed) >> job_shift) + 1;
    state_.store(job << job_shift | static_cast<std::uint64_t>(count) << count_shift);
    if (sleepers_.load() > 0) ring();
    while (take_piece()) {
    }
    for (int i = 0; done_.load(std::memory_order_acquire) < count; ++i)
      i < patience ? pause() : std::this_thread::yield();
  }

 private:
  static constexpr int patience = 4096;  ///< rounds of waiting before a thread gives way

  /// Does one piece; false when all are taken. A piece that is taken keeps the job's `call_` and
  /// `f_` in place until it is done.
  bool take_piece() {
    std::uint64_t state = state_.load(std::memory_order_acquire);
    do {
      if ((state & count_mask) >= (state >> count_shift & count_mask)) return false;
    } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
    call_(f_, static_cast<Index>(state & count_mask));
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void work() {
    MemoryPool pool;  // of the kernels' scratch memory
    const MemoryPool::Use use(pool);
    for (int idle = 0; !stopping_; ++idle) {
      if (take_piece()) idle = 0;
      if (idle < patience)
        pause();
      else
        sleep();
    }
  }

  void sleep() {
    const std::uint32_t heard = bell_.load();
    ++sleepers_;
    const std::uint64_t state = state_.load();
    if ((state & count_mask) >= (state >> count_shift & count_mask) && !stopping_)
      bell_.wait(heard);
    --sleepers_;
  }

  void ring() {
    ++bell_;
    bell_.notify_all();
  }

  Call call_ = nullptr;
  const void* f_ = nullptr;
  std::atomic<std::uint64_t> state_ = 0;
  alignas(64) std::atomic<Index> done_ = 0;
  alignas(64) std::atomic<std::uint32_t> bell_ = 0;
  std::atomic<int> sleepers_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<std::jthread> workers_;
};

struct Threads {
  std::atomic_flag busy;  ///< while a job runs
  std::optional<Team> team;
  std::atomic<int> count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

/// The process's threads, started when first needed.
Threads& the_threads() {
  static Threads threads;
  return threads;
}

}  // namespace

void set_threads(int count) {
  require<ValueError>(count >= 1, "[set_threads] needs at least 1 thread, got {}", count);
  the_threads().count = count;
}

int threads() {
  return the_threads().count;
}

Pieces cut(Index length, Index cost, Index most) {
  constexpr Index worthwhile = Index{1} << 15;
  const Index work = length * std::max<Index>(cost, 1);
  return {length, std::clamp<Index>(work / worthwhile, 1, std::clamp<Index>(length, 1, most))};
}

void detail::parallel(Index count, Call call, const void* f) {
  Threads& all = the_threads();
  const int wanted = all.count;
  // A job inside a job, or of another thread, is done by whoever brings it.
  if (wanted == 1 || count > Team::most_pieces || all.busy.test_and_set()) {
    for (Index i = 0; i < count; ++i) call(f, i);
    return;
  }
  if (!all.team || all.team->size() != wanted) all.team.emplace(wanted);
  all.team->run(count, call, f);
  all.busy.clear();
}

}  // namespace qkv
