#include "core/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/execution.h"
#include "core/joining_thread.h"

namespace qkv::tests {
namespace {

/// Sets the number of threads until its end.
class Threads {
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// How often each of `count` calls is made.
class Calls {
 public:
  explicit Calls(Index count) : counts_(static_cast<std::size_t>(count)) {}

  void operator()(Index i) { ++counts_[static_cast<std::size_t>(i)]; }
  bool once_each() const {
    return std::ranges::all_of(counts_, [](const auto& count) { return count == 1; });
  }

 private:
  std::vector<std::atomic<int>> counts_;
};

constexpr std::array thread_counts = {1, 2, 3, 7};

}  // namespace

TEST_CASE("a JoiningThread is joined when it is destroyed or assigned to") {
  std::atomic<int> ended = 0;
  const auto slow = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++ended;
  };
  {
    JoiningThread thread(slow);
    thread = JoiningThread(slow);
    CHECK(ended >= 1);
    std::vector<JoiningThread> moved;
    moved.push_back(std::move(thread));
    thread.join();  // nothing is left in it
  }
  CHECK(ended == 2);
}

TEST_CASE("parallel_for calls each chunk once for every size and number of threads") {
  for (const int count : thread_counts) {
    const Threads scope(count);
    for (const Index size : {0, 1, 2, 3, 6, 7, 8, 100, 1000}) {
      CAPTURE(count);
      CAPTURE(size);
      Calls calls(size);
      parallel_for(size, [&](Index i) { calls(i); });
      CHECK(calls.once_each());
    }
  }
}

TEST_CASE("many short jobs in a row leave no chunk out on any number of threads") {
  for (const int count : thread_counts) {
    const Threads scope(count);
    std::atomic<Index> sum = 0;
    for (Index job = 0; job < 2000; ++job)
      parallel_for(job % 5, [&](Index i) { sum.fetch_add(i + 1, std::memory_order_relaxed); });
    CHECK(sum == 400 * (0 + 1 + 3 + 6 + 10));
  }
}

TEST_CASE("more chunks than a job of threads may have run on the caller") {
  const Threads scope(2);
  constexpr Index size = (Index{1} << 20) + 3;
  const auto caller = std::this_thread::get_id();
  Index calls = 0;
  bool elsewhere = false;
  parallel_for(size, [&](Index) {
    ++calls;
    elsewhere = elsewhere || std::this_thread::get_id() != caller;
  });
  CHECK(calls == size);
  CHECK_FALSE(elsewhere);
}

TEST_CASE("what threads write is visible to the caller after parallel_for") {
  for (const int count : thread_counts) {
    const Threads scope(count);
    for (Index round = 0; round < 200; ++round) {
      std::vector<Index> squares(64);
      parallel_for(64, [&](Index i) { squares[static_cast<std::size_t>(i)] = i * i + round; });
      Index wrong = 0;
      for (Index i = 0; i < 64; ++i) wrong += squares[static_cast<std::size_t>(i)] != i * i + round;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE(
    "calls inside a call of parallel_for run each chunk once, on the threads of their callers") {
  for (const int count : thread_counts) {
    const Threads scope(count);
    Calls calls(20 * 30);
    std::atomic<int> elsewhere = 0;
    parallel_for(20, [&](Index i) {
      const auto outer = std::this_thread::get_id();
      parallel_for(30, [&](Index j) {
        calls(30 * i + j);
        if (std::this_thread::get_id() != outer) ++elsewhere;
      });
    });
    CHECK(calls.once_each());
    CHECK(elsewhere == 0);
  }
}

TEST_CASE("concurrent calls from several threads run each chunk once") {
  const Threads scope(3);
  std::array<Calls, 4> calls{Calls(500), Calls(500), Calls(500), Calls(500)};
  {
    std::vector<JoiningThread> callers;
    for (Calls& mine : calls)
      callers.emplace_back([&mine] {
        for (Index first = 0; first < 500; first += 5)
          parallel_for(5, [&](Index i) { mine(first + i); });
      });
  }
  for (const Calls& each : calls) CHECK(each.once_each());
}

TEST_CASE("lanes run each call of their loops once, on threads of their own") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    const Threads scope(2 * size);
    std::array<Calls, 2> calls{Calls(200 * 7), Calls(200 * 7)};
    std::array<std::set<std::thread::id>, 2> found;
    parallel_lanes(2, size, [&](Index lane) {
      const auto i = static_cast<std::size_t>(lane);
      std::array<std::thread::id, 7> ran_on;
      for (Index loop = 0; loop < 200; ++loop) {
        parallel_for(7, [&](Index j) {
          calls[i](7 * loop + j);
          ran_on[static_cast<std::size_t>(j)] = std::this_thread::get_id();
        });
        found[i].insert(ran_on.begin(), ran_on.end());
      }
    });
    for (const Calls& each : calls) CHECK(each.once_each());
    // A lane that ends early leaves its threads to another.
    for (const auto& lane : found) CHECK(std::ssize(lane) <= size);
  }
}

TEST_CASE("lanes that no other thread serves run each call of their loops once") {
  for (const int count : {1, 2, 8}) {  // fewer threads and more than lanes ask for
    CAPTURE(count);
    const Threads scope(count);
    Calls calls(3 * 2 * 50);
    parallel_for(3, [&](Index i) {  // the lanes of a nested call are serial
      parallel_lanes(2, 2, [&](Index lane) {
        parallel_for(50, [&](Index j) { calls(50 * (2 * i + lane) + j); });
      });
    });
    CHECK(calls.once_each());
    Calls alone(2 * 50);
    parallel_lanes(2, 2,
                   [&](Index lane) { parallel_for(50, [&](Index j) { alone(50 * lane + j); }); });
    CHECK(alone.once_each());
  }
}

TEST_CASE("a loop inside a loop of a lane runs each chunk once") {
  const Threads scope(6);
  std::array<Calls, 2> calls{Calls(20 * 30), Calls(20 * 30)};
  parallel_lanes(2, 3, [&](Index lane) {
    parallel_for(20, [&, execution = Execution::current()](Index i) {
      const ExecutionScope inherited(execution);
      parallel_for(30, [&](Index j) { calls[static_cast<std::size_t>(lane)](30 * i + j); });
    });
  });
  for (const Calls& each : calls) CHECK(each.once_each());
}

TEST_CASE("a lane executes as its caller does") {
  const Threads scope(4);
  const ExecutionScope caller(Execution::current().with(&Execution::records_graph, false));
  std::array<bool, 2> records = {true, true};
  parallel_lanes(2, 2, [&](Index lane) {
    records[static_cast<std::size_t>(lane)] = Execution::current().records_graph;
  });
  for (const bool each : records) CHECK_FALSE(each);
}

TEST_CASE("an exception within a lane reaches the caller, and threads serve the next job") {
  const Threads scope(4);
  for (int round = 0; round < 50; ++round) {
    CHECK_THROWS_AS(parallel_lanes(2, 2,
                                   [&](Index lane) {
                                     parallel_for(40, [&](Index i) {
                                       if (lane == 1 && i == 30)
                                         throw ValueError("[test] an error");
                                     });
                                   }),
                    ValueError);
    CHECK_THROWS_AS(parallel_lanes(2, 2, [](Index) { throw ValueError("[test] an error"); }),
                    ValueError);
    Calls calls(50);
    parallel_for(50, [&](Index i) { calls(i); });
    CHECK(calls.once_each());
  }
}

TEST_CASE("an exception of a single chunk reaches the caller, and threads serve the next job") {
  const Threads scope(2);
  CHECK_THROWS_AS(parallel_for(1, [](Index) { throw ValueError("[test] an error"); }), ValueError);
  Calls calls(50);
  parallel_for(50, [&](Index i) { calls(i); });
  CHECK(calls.once_each());
}

TEST_CASE("an exception on any of several threads reaches the caller once all have ended") {
  for (const int count : thread_counts) {
    const Threads scope(count);
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> running = 0;
      CHECK_THROWS_AS(parallel_for(40,
                                   [&](Index i) {
                                     ++running;
                                     std::this_thread::yield();
                                     --running;
                                     if (i % 7 == 3) throw ValueError("[test] an error");
                                   }),
                      ValueError);
      CHECK(running == 0);
    }
    Calls calls(50);
    parallel_for(50, [&](Index i) { calls(i); });
    CHECK(calls.once_each());
  }
}

TEST_CASE("a change of the number of threads between jobs loses no chunk") {
  for (int round = 0; round < 5; ++round)
    for (const int count : thread_counts) {
      const Threads scope(count);
      Calls calls(40);
      parallel_for(40, [&](Index i) { calls(i); });
      CHECK(calls.once_each());
    }
}

TEST_CASE("a chosen number of threads comes before the default") {
  const Threads scope(3);
  set_default_threads(7);
  CHECK(threads() == 3);
}

TEST_CASE("the default is a thread for each core, up to the chunks of a loop") {
  CHECK(detail::default_threads(0) == 1);
  CHECK(detail::default_threads(3) == 3);
  CHECK(detail::default_threads(64) == most_chunks);
}

TEST_CASE("set_threads refuses fewer than 1 thread") {
  CHECK_THROWS_WITH_AS(set_threads(0), "[set_threads] needs at least 1 thread, got 0", ValueError);
}

TEST_CASE("chunks join without gaps, differ by at most 1 and do not depend on threads") {
  for (const Index length : {0, 1, 5, 16, 17, 1000, 123'457})
    for (const Index cost : {0, 1, 100, 100'000})
      for (const Index most : {1, 3, 16}) {
        const Chunks chunks = partition(length, cost, most);
        CAPTURE(length);
        CAPTURE(chunks.count);
        REQUIRE(chunks.count >= 1);
        CHECK(chunks.count <= most);
        CHECK(chunks.count <= std::max<Index>(length, 1));
        CHECK(chunks.begin(0) == 0);
        CHECK(chunks.end(chunks.count - 1) == length);
        for (Index i = 0; i < chunks.count; ++i) {
          CHECK(chunks.end(i) - chunks.begin(i) >= length / chunks.count);
          CHECK(chunks.end(i) - chunks.begin(i) <= length / chunks.count + 1);
        }
        for (const int count : thread_counts) {
          const Threads scope(count);
          CHECK(partition(length, cost, most).count == chunks.count);
        }
      }
}

}  // namespace qkv::tests
