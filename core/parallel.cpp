#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
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

/// A thread pool that runs one job at a time. Each thread begins with a range of its own, the same
/// rows of every matrix, which it then finds in its cache. Idle threads, including the caller,
/// steal chunks, so a preempted worker does not stall the job.
class ThreadPool {
 public:
  explicit ThreadPool(int size) : ranges_(static_cast<std::size_t>(size)) {
    workers_.reserve(ranges_.size());
    try {
      for (std::size_t i = 1; i < ranges_.size(); ++i)
        workers_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      // A limit of the system: those that could be started steal the chunks of the others.
    }
  }
  ~ThreadPool() {
    stopping_ = true;
    wake_all();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The number of threads that were asked for; the system may have refused to start some.
  int size() const { return static_cast<int>(ranges_.size()); }

  void run(Index count, Call call, const void* f) {
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

 private:
  static constexpr int spin_limit = 4096;  ///< rounds of polling before a thread yields or sleeps

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

  void work(std::size_t thread) {
    MemoryPool pool;  // of the kernels' scratch buffers
    const MemoryPool::Use use(pool);
    for (int idle = 0; !stopping_; ++idle) {
      if (run_chunk(thread)) idle = 0;
      if (idle < spin_limit)
        pause();
      else
        sleep();
    }
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
  std::exception_ptr error_;  ///< the first of a job
  std::vector<JoiningThread> workers_;
};

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

/// The pool starts with the first loop.
struct ThreadGroup::State {
  /// Nested and concurrent calls run serially on the calling thread.
  void run(Index count, Call call, const void* f) {
    const int wanted = size;
    const TryLock lock(busy);
    if (wanted == 1 || count > ChunkRange::max_chunks || !lock.owned()) {
      for (Index i = 0; i < count; ++i) call(f, i);
      return;
    }
    if (!pool || pool->size() != wanted) pool.emplace(wanted);
    pool->run(count, call, f);
  }

  std::atomic<int> size = 1;
  std::atomic_flag busy;  ///< while a job runs
  std::optional<ThreadPool> pool;
};

ThreadGroup::ThreadGroup() : state_(std::make_unique<State>()) {}
ThreadGroup::~ThreadGroup() = default;

void ThreadGroup::resize(int size) {
  state_->size = size;
}

int ThreadGroup::size() const {
  return state_->size;
}

namespace {

/// The process's threads.
struct Threads {
  Threads() { group.resize(detail::default_threads(usable_cores())); }

  ThreadGroup group;
  std::atomic<bool> chosen = false;  ///< by set_threads
};

Threads& process_threads() {
  static Threads threads;
  return threads;
}

}  // namespace

void set_threads(int count) {
  require<ValueError>(count >= 1, "[set_threads] needs at least 1 thread, got {}", count);
  process_threads().chosen = true;
  process_threads().group.resize(count);
}

void set_default_threads(int count) {
  if (!process_threads().chosen) process_threads().group.resize(detail::default_threads(count));
}

int threads() {
  return process_threads().group.size();
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
  const ThreadGroup* own = Execution::current().threads;
  (own ? *own : process_threads().group).state_->run(count, call, f);
}

}  // namespace qkv
