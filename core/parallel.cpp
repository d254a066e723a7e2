#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/control_group.h"
#include "core/error.h"
#include "core/execution.h"
#include "core/joining_thread.h"
#include "core/memory.h"

namespace qkv {
namespace {

using Call = void (*)(const void*, Index);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // `yield` does nothing on most cores; a barrier waits about as long as x86's pause.
  asm volatile("isb" ::: "memory");
#endif
}

/// A range of chunks [next, end) of a job, which threads claim one by one. Job, end and next share
/// one word, so that a claim is one compare-and-swap and cannot hit the range of another job.
class alignas(64) ChunkRange {
  static constexpr int end_shift = 20, job_shift = 40;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << end_shift) - 1;

 public:
  static constexpr auto max_chunks = static_cast<Index>(mask);

  void assign(std::uint64_t job, Index begin, Index end) {
    state_.store(job << job_shift | static_cast<std::uint64_t>(end) << end_shift |
                 static_cast<std::uint64_t>(begin));
  }
  /// The next chunk, or -1 when all are claimed. A job does not end while a claimed chunk runs.
  Index claim() {
    std::uint64_t state = state_.load(std::memory_order_acquire);
    do {
      if (is_empty(state)) return -1;
    } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
    return static_cast<Index>(state & mask);
  }
  bool empty() const { return is_empty(state_.load()); }

 private:
  static bool is_empty(std::uint64_t state) {
    return (state & mask) >= (state >> end_shift & mask);
  }

  std::atomic<std::uint64_t> state_ = 0;
};

/// Calls that find no threads which could share them.
void run_serially(Index count, Call call, const void* f) {
  for (Index i = 0; i < count; ++i) call(f, i);
}

/// Try-lock on a flag; re-entry from the owner fails instead of being undefined as with std::mutex.
class TryLock {
 public:
  explicit TryLock(std::atomic_flag& busy) : busy_(busy), owned_(!busy.test_and_set()) {}
  ~TryLock() {
    if (owned_) busy_.clear();
  }
  TryLock(const TryLock&) = delete;
  TryLock& operator=(const TryLock&) = delete;

  bool owned() const { return owned_; }

 private:
  std::atomic_flag& busy_;
  bool owned_;
};

}  // namespace

/// Threads that share one job at a time: that which runs it is the first, the others serve. Each
/// begins with a range of its own, the same rows of every matrix, which it then finds in its cache.
/// Idle ones steal chunks, so that one which is preempted, or never came, does not stall the job.
class detail::Team {
 public:
  explicit Team(Index size) : ranges_(static_cast<std::size_t>(size)) {}

  Index size() const { return std::ssize(ranges_); }

  /// Nested calls run serially on the calling thread.
  void run(Index count, Call call, const void* f) {
    const TryLock lock(busy_);
    if (size() == 1 || count > ChunkRange::max_chunks || !lock.owned())
      run_serially(count, call, f);
    else
      share(count, call, f);
  }

  /// Helps with jobs, as thread `thread` >= 1 of the team, until `stop`.
  void serve(Index thread) {
    for (int idle = 0; !stopping_; ++idle) {
      if (run_chunk(static_cast<std::size_t>(thread))) idle = 0;
      if (idle < spin_limit)
        pause();
      else
        sleep();
    }
  }

  void stop() {
    stopping_ = true;
    wake_all();
  }

 private:
  static constexpr int spin_limit = 4096;  ///< rounds of polling before a thread yields or sleeps

  void share(Index count, Call call, const void* f) {
    call_ = call;
    f_ = f;
    done_.store(0, std::memory_order_relaxed);
    ++job_;
    const Chunks split{count, static_cast<Index>(ranges_.size())};
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const auto range = static_cast<Index>(i);
      ranges_[i].assign(job_, split.begin(range), split.end(range));
    }
    if (sleepers_.load() > 0) wake_all();
    while (run_chunk(0)) {
    }
    for (int i = 0; done_.load(std::memory_order_acquire) < count; ++i)
      i < spin_limit ? pause() : std::this_thread::yield();
    if (!failed_.test()) return;
    failed_.clear();
    std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// Runs one chunk, of the thread's own range if one is left there; false when all are claimed.
  bool run_chunk(std::size_t thread) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const Index chunk = ranges_[(thread + i) % ranges_.size()].claim();
      if (chunk < 0) continue;
      try {
        call_(f_, chunk);
      } catch (...) {
        if (!failed_.test_and_set()) error_ = std::current_exception();
      }
      done_.fetch_add(1, std::memory_order_release);
      return true;
    }
    return false;
  }

  void sleep() {
    const std::uint32_t seen = wake_event_.load();
    ++sleepers_;
    if (std::ranges::all_of(ranges_, &ChunkRange::empty) && !stopping_) wake_event_.wait(seen);
    --sleepers_;
  }

  void wake_all() {
    ++wake_event_;
    wake_event_.notify_all();
  }

  Call call_ = nullptr;
  const void* f_ = nullptr;
  std::uint64_t job_ = 0;
  std::vector<ChunkRange> ranges_;
  alignas(64) std::atomic<Index> done_ = 0;
  alignas(64) std::atomic<std::uint32_t> wake_event_ = 0;  ///< incremented to wake sleepers
  std::atomic<int> sleepers_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic_flag failed_;
  std::atomic_flag busy_;     ///< while a job runs
  std::exception_ptr error_;  ///< the first of a job
};

namespace {

using detail::Team;

class ThreadPool {
 public:
  explicit ThreadPool(int size) : team_(size) {
    workers_.reserve(static_cast<std::size_t>(size));
    try {
      for (Index i = 1; i < size; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      // A limit of the system: those that could be started steal the chunks of the others.
    }
  }
  ~ThreadPool() { team_.stop(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The system may have refused to start some of its threads.
  Team& team() { return team_; }

 private:
  void work(Index thread) {
    MemoryPool pool;  // of the kernels' scratch buffers
    const MemoryPool::Use use(pool);
    team_.serve(thread);
  }

  Team team_;
  std::vector<JoiningThread> workers_;
};

struct Threads {
  std::atomic_flag busy;  ///< while the pool is in use
  std::optional<ThreadPool> pool;
  std::atomic<int> chosen = 0;  ///< 0: the default
  std::atomic<int> standard = detail::default_threads(usable_cores());

  int count() const {
    const int count = chosen;
    return count > 0 ? count : standard.load();
  }
};

/// Lets those who serve a team go, whether its lane returns or throws.
struct StopOnExit {
  Team& team;
  ~StopOnExit() { team.stop(); }
};

/// The process's threads, started when first needed.
Threads& process_threads() {
  static Threads threads;
  return threads;
}

}  // namespace

void set_threads(int count) {
  require<ValueError>(count >= 1, "[set_threads] needs at least 1 thread, got {}", count);
  process_threads().chosen = count;
}

void set_default_threads(int count) {
  process_threads().standard = detail::default_threads(count);
}

int threads() {
  return process_threads().count();
}

Chunks partition(Index length, Index cost, Index most) {
  constexpr Index min_work = Index{1} << 15;  // operations that amortise scheduling
  const Index work = length * std::max<Index>(cost, 1);
  return {length, std::clamp<Index>(work / min_work, 1, std::clamp<Index>(length, 1, most))};
}

int detail::default_threads(int cores) {
  return std::clamp(cores, 1, static_cast<int>(most_chunks));
}

void detail::parallel(Index count, Call call, const void* f) {
  if (Team* team = Execution::current().team) return team->run(count, call, f);
  Threads& all = process_threads();
  const int wanted = all.count();
  // Nested and concurrent calls run serially on the calling thread.
  const TryLock lock(all.busy);
  if (wanted == 1 || !lock.owned()) return run_serially(count, call, f);
  if (!all.pool || all.pool->team().size() != wanted) all.pool.emplace(wanted);
  all.pool->team().run(count, call, f);
}

void detail::parallel_lanes(Index lanes, Index threads_per_lane, Call call, const void* f) {
  std::deque<Team> teams;
  for (Index lane = 0; lane < lanes; ++lane) teams.emplace_back(threads_per_lane);
  // Lanes come before those who serve them, so that no thread waits for a lane that none has taken.
  parallel_for(lanes * threads_per_lane, [&, caller = Execution::current()](Index i) {
    Team& team = teams[static_cast<std::size_t>(i % lanes)];
    if (i >= lanes) return team.serve(i / lanes);
    const ExecutionScope scope(caller.with(&Execution::team, &team));
    const StopOnExit stop{team};
    call(f, i);
  });
}

}  // namespace qkv
