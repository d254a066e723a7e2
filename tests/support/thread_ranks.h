#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/joining_thread.h"
#include "train/ranks/communicator.h"

namespace qkv::tests {

/// Where ranks that are threads of this process exchange what they send.
class Exchange {
 public:
  struct Sent {
    const std::byte* bytes = nullptr;
    std::span<const Index> sizes;
  };

  explicit Exchange(Index size) : size_(size), sent_(static_cast<std::size_t>(size)) {}

  Index size() const { return size_; }
  Sent& sent(Index rank) { return sent_[static_cast<std::size_t>(rank)]; }
  /// Waits for all ranks. Throws Error when one has failed.
  void meet() {
    std::unique_lock lock(mutex_);
    const Index meeting = meetings_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++meetings_;
      met_.notify_all();
    }
    met_.wait(lock, [&] { return failed_ || meetings_ != meeting; });
    require<Error>(!failed_, "another rank has failed");
  }
  void fail() {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    met_.notify_all();
  }

 private:
  Index size_;
  std::vector<Sent> sent_;
  std::mutex mutex_;
  std::condition_variable met_;
  Index arrived_ = 0, meetings_ = 0;
  bool failed_ = false;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Exchange& exchange, Index rank) : exchange_(exchange), rank_(rank) {}

  Index rank() const override { return rank_; }
  Index size() const override { return exchange_.size(); }

  void all_gather(std::span<std::byte> bytes, std::span<const Index> sizes) const override {
    exchange_.sent(rank_) = {bytes.data(), sizes};
    exchange_.meet();
    for (Index rank = 0, begin = 0; rank < size(); begin += sizes[static_cast<std::size_t>(rank++)])
      if (rank != rank_)
        std::copy_n(exchange_.sent(rank).bytes + begin, sizes[static_cast<std::size_t>(rank)],
                    bytes.begin() + begin);
    exchange_.meet();
  }
  void all_to_all(std::span<const std::byte> sent, std::span<const Index> sent_sizes,
                  std::span<std::byte> received,
                  std::span<const Index> received_sizes) const override {
    exchange_.sent(rank_) = {sent.data(), sent_sizes};
    exchange_.meet();
    auto to = received.begin();
    for (Index rank = 0; rank < size(); ++rank) {
      const auto& [bytes, sizes] = exchange_.sent(rank);
      Index begin = 0;
      for (Index before = 0; before < rank_; ++before)
        begin += sizes[static_cast<std::size_t>(before)];
      to = std::copy_n(bytes + begin, received_sizes[static_cast<std::size_t>(rank)], to);
    }
    exchange_.meet();
  }

 private:
  Exchange& exchange_;
  Index rank_;
};

/// Calls `work(ranks)` on `size` ranks, each a thread, and rethrows what the first of them threw.
template <class Work>
void on_ranks(Index size, const Work& work) {
  Exchange exchange(size);
  std::exception_ptr error;
  std::mutex error_mutex;
  {
    std::vector<JoiningThread> threads;
    for (Index rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          work(static_cast<const Communicator&>(ThreadRank(exchange, rank)));
        } catch (...) {
          const std::scoped_lock lock(error_mutex);
          if (!error) error = std::current_exception();
          exchange.fail();
        }
      });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace qkv::tests
