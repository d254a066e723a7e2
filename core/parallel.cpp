#include "core/parallel.h"

#include <algorithm>
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

/// A run of pieces [next, end) of a job that threads take one by one.
class alignas(64) Share {
  static constexpr int end_shift = 20, job_shift = 40;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << end_shift) - 1;

 public:
  static constexpr auto most_pieces = static_cast<Index>(mask);

  void offer(std::uint64_t job, Index begin, Index end) {
    state_.store(job << job_shift | static_cast<std::uint64_t>(end) << end_shift |
                 static_cast<std::uint64_t>(begin));
  }
  /// The next piece, or -1 when all are taken. A piece that is taken keeps its job going.
  Index take() {
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

/// Threads that do the pieces of one job at a time. Each begins with a share of its own, the same
/// rows of every matrix, which it then finds in its cache. Whoever is done helps the others, the
/// caller among them, so that a thread that the system has put aside holds nobody up.
class Team {
 public:
  explicit Team(int size) : shares_(static_cast<std::size_t>(size)) {
    for (std::size_t i = 1; i < shares_.size(); ++i) workers_.emplace_back([this, i] { work(i); });
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
    ++job_;
    const Chunks runs{count, static_cast<Index>(shares_.size())};
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const auto run = static_cast<Index>(i);
      shares_[i].offer(job_, runs.begin(run), runs.end(run));
    }
    if (sleepers_.load() > 0) ring();
    while (do_piece(0)) {
    }
    for (int i = 0; done_.load(std::memory_order_acquire) < count; ++i)
      i < patience ? pause() : std::this_thread::yield();
  }

 private:
  static constexpr int patience = 4096;  ///< rounds of waiting before a thread gives way

  /// Does one piece, of the thread's own share if there is one left; false when all are taken.
  bool do_piece(std::size_t thread) {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const Index piece = shares_[(thread + i) % shares_.size()].take();
      if (piece < 0) continue;
      call_(f_, piece);
      done_.fetch_add(1, std::memory_order_release);
      return true;
    }
    return false;
  }

  void work(std::size_t thread) {
    MemoryPool pool;  // of the kernels' scratch memory
    const MemoryPool::Use use(pool);
    for (int idle = 0; !stopping_; ++idle) {
      if (do_piece(thread)) idle = 0;
      if (idle < patience)
        pause();
      else
        sleep();
    }
  }

  void sleep() {
    const std::uint32_t heard = bell_.load();
    ++sleepers_;
    if (std::ranges::all_of(shares_, &Share::empty) && !stopping_) bell_.wait(heard);
    --sleepers_;
  }

  void ring() {
    ++bell_;
    bell_.notify_all();
  }

  Call call_ = nullptr;
  const void* f_ = nullptr;
  std::uint64_t job_ = 0;
  std::vector<Share> shares_;
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

/// Sets a flag, unless somebody else did, and clears it at its end. Unlike a mutex, the flag may be
/// asked for by the thread that set it.
class Turn {
 public:
  explicit Turn(std::atomic_flag& busy) : busy_(busy), mine_(!busy.test_and_set()) {}
  ~Turn() {
    if (mine_) busy_.clear();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool mine() const { return mine_; }

 private:
  std::atomic_flag& busy_;
  bool mine_;
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

Chunks partition(Index length, Index cost, Index most) {
  constexpr Index worthwhile = Index{1} << 15;
  const Index work = length * std::max<Index>(cost, 1);
  return {length, std::clamp<Index>(work / worthwhile, 1, std::clamp<Index>(length, 1, most))};
}

void detail::parallel(Index count, Call call, const void* f) {
  Threads& all = the_threads();
  const int wanted = all.count;
  // A job inside a job, or of another thread, is done by whoever brings it.
  const Turn turn(all.busy);
  if (wanted == 1 || count > Share::most_pieces || !turn.mine()) {
    for (Index i = 0; i < count; ++i) call(f, i);
    return;
  }
  if (!all.team || all.team->size() != wanted) all.team.emplace(wanted);
  all.team->run(count, call, f);
}

}  // namespace qkv
