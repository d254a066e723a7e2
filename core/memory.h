#pragma once

#include <cstddef>
#include <memory>

#include "core/execution.h"

namespace qkv {
namespace detail {
std::byte* acquire_block(std::size_t bytes);
}

/// Recycles the blocks of tensors and graph nodes. A training step needs the same blocks as the
/// step before it, so that, once warm, it allocates none from the system. Blocks may be released on
/// any thread and may outlive the pool, which gives all others back to the system at its end.
class MemoryPool {
 public:
  struct State;

  MemoryPool();
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Bytes of the blocks that were allocated from the system because none could be reused.
  std::size_t system_bytes() const;
  /// Gives the blocks that nobody uses back to the system.
  void trim();

  /// While alive, this thread takes new blocks from `pool`; without one they come from the system.
  class Use {
   public:
    explicit Use(MemoryPool& pool) : scope_(Execution::current().with(&Execution::memory, &pool)) {}

   private:
    ExecutionScope scope_;
  };

 private:
  friend std::byte* detail::acquire_block(std::size_t bytes);

  State* state_;
};

namespace detail {

/// A 64-byte aligned block of at least `bytes` bytes with undefined contents; never null.
std::byte* acquire_block(std::size_t bytes);
void release_block(std::byte* block) noexcept;

/// Standard allocator over `acquire_block`.
template <class T>
struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <class U>
  BlockAllocator(const BlockAllocator<U>&) noexcept {}

  T* allocate(std::size_t n) { return reinterpret_cast<T*>(acquire_block(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { release_block(reinterpret_cast<std::byte*>(p)); }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }
};

/// A block with shared ownership.
using Buffer = std::shared_ptr<std::byte>;
Buffer allocate_buffer(std::size_t bytes);

}  // namespace detail
}  // namespace qkv
