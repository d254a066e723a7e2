#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/shape.h"

namespace qkv {

/// Elements that are exchanged at a time, so that buffers stay small beside the parameters.
inline constexpr Index bucket_length = Index{1} << 20;

/// The processes, called ranks, that train one model together. All of them call the same functions
/// in the same order. This class is the group of a process that trains alone; `connect` returns
/// that of MPI. Every function throws Error when another rank can no longer be reached.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual Index rank() const { return 0; }
  virtual Index size() const { return 1; }

  /// `bytes` holds a block for each rank, that of rank r of `sizes[r]` bytes: sends this rank's
  /// block to all others and receives theirs.
  virtual void all_gather([[maybe_unused]] std::span<std::byte> bytes,
                          [[maybe_unused]] std::span<const Index> sizes) const {}
  /// Sends block r of `sent`, of `sent_sizes[r]` bytes, to rank r, and receives block r of
  /// `received`, of `received_sizes[r]` bytes, from it.
  virtual void all_to_all(std::span<const std::byte> sent,
                          [[maybe_unused]] std::span<const Index> sent_sizes,
                          std::span<std::byte> received,
                          [[maybe_unused]] std::span<const Index> received_sizes) const {
    std::ranges::copy(sent, received.begin());
  }
  /// Kills all other ranks and lets their launcher end with `exit_code`. May not return.
  virtual void kill_others([[maybe_unused]] int exit_code) const {}
};

/// The group of a process that trains alone.
inline const Communicator single_process;

/// The values of all ranks, by rank.
template <class T>
std::vector<T> all_gather(const Communicator& ranks, const T& own) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  all[static_cast<std::size_t>(ranks.rank())] = own;
  const std::vector<Index> sizes(all.size(), sizeof(T));
  ranks.all_gather(std::as_writable_bytes(std::span(all)), sizes);
  return all;
}

/// The group in which an MPI launcher (mpirun, srun) started this process. It must be the only one
/// and outlive all use of it. Threads that nobody has chosen (core/parallel.h) become one for each
/// core that the ranks of a machine leave to this one. Throws UserError when the program was
/// started as one of several and built without MPI.
std::unique_ptr<const Communicator> connect();

}  // namespace qkv
