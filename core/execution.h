#pragma once

#include <type_traits>

namespace qkv {

class MemoryPool;
class PackedWeights;
namespace detail {
class Team;
}

/// Effects of a thread's ops besides their results. This is the library's only state
/// outside objects apart from the process's threads (core/parallel.h). Each thread has its own,
/// which starts with these defaults: a shard that runs on another thread inherits its caller's by
/// one `ExecutionScope`.
struct Execution {
  bool records_graph = true;     ///< ops record their backward; off within NoGrad
  bool detects_anomaly = false;  ///< ops check for NaN and Inf; on within DetectAnomaly
  MemoryPool* memory = nullptr;  ///< source of new blocks; set within MemoryPool::Use; null: malloc
  bool has_storage = true;       ///< new tensors have elements; off within WithoutStorage
  PackedWeights* packed = nullptr;  ///< weights of `linear`; set within PackedWeights::Use
  detail::Team* team = nullptr;     ///< threads that share loops, within a lane; null: all

  /// The calling thread's.
  static const Execution& current() noexcept;

  template <class T>
  Execution with(T Execution::*member, std::type_identity_t<T> value) const noexcept {
    Execution changed = *this;
    changed.*member = value;
    return changed;
  }
};

/// While alive, the calling thread executes as `execution` says. Scopes nest.
class ExecutionScope {
 public:
  explicit ExecutionScope(const Execution& execution) noexcept;
  ~ExecutionScope();
  ExecutionScope(const ExecutionScope&) = delete;
  ExecutionScope& operator=(const ExecutionScope&) = delete;

 private:
  Execution previous_;
};

}  // namespace qkv
