#include "core/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>

#include "core/platform.h"

namespace qkv {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t size_classes = std::size_t{4} * 64;
/// A request takes a free block of its own class or of one of the next, of less than twice its
/// size.
constexpr std::size_t wider = 4;

/// Four classes to each power of two waste at most a fifth of a block.
std::size_t size_class(std::size_t bytes) {
  const std::size_t units = std::max<std::size_t>((bytes + alignment - 1) / alignment, 1);
  if (units <= 4) return units;
  const auto power = static_cast<std::size_t>(std::bit_width(units - 1)) - 1;
  const std::size_t quarter = (units - 1) >> (power - 2) & 3;
  return 4 * power + quarter - 3;
}

std::size_t class_bytes(std::size_t index) {
  if (index <= 4) return index * alignment;
  const std::size_t power = (index + 3) / 4;
  const std::size_t quarter = (index + 3) % 4;
  return ((quarter + 5) << (power - 2)) * alignment;
}

}  // namespace

struct MemoryPool::State {
  std::mutex mutex;
  std::size_t references = 1;  // the pool and every block in use
  std::array<std::byte*, size_classes>
      free{};  // free lists, linked through the blocks' first bytes
  std::size_t system_bytes = 0;
  bool closed = false;  ///< released blocks go back to the system

  void trim();
};

namespace {

/// Precedes every block.
struct alignas(alignment) Header {
  MemoryPool::State* pool;
  std::size_t size_class;
  std::array<std::byte, 48> control;  // of a Buffer's reference counts
};
static_assert(sizeof(Header) == alignment);

Header& header_of(std::byte* block) {
  return *(reinterpret_cast<Header*>(block) - 1);
}

std::byte* system_block(std::size_t bytes, const Header& header) {
  auto* storage =
      static_cast<std::byte*>(::operator new (bytes + sizeof(Header), std::align_val_t{alignment}));
  return reinterpret_cast<std::byte*>(new (storage) Header(header) + 1);
}

void free_to_system(std::byte* block) {
  ::operator delete (block - sizeof(Header), std::align_val_t{alignment});
}

std::byte*& next(std::byte* free_block) {
  return *reinterpret_cast<std::byte**>(free_block);
}

/// Calls f() on the locked pool and drops a reference to it.
template <class F>
void drop_reference(MemoryPool::State* pool, F f) {
  std::unique_lock lock(pool->mutex);
  f();
  if (--pool->references > 0) return;
  lock.unlock();
  delete pool;
}

/// Places a Buffer's reference counts in the header of its block, which goes with them.
template <class T>
struct ControlAllocator {
  using value_type = T;
  explicit ControlAllocator(std::byte* of) : block(of) {}
  template <class U>
  ControlAllocator(const ControlAllocator<U>& other) noexcept : block(other.block) {}

  T* allocate(std::size_t) {
    static_assert(sizeof(T) <= sizeof(Header::control) && alignof(T) <= alignof(Header*));
    return reinterpret_cast<T*>(header_of(block).control.data());
  }
  void deallocate(T*, std::size_t) noexcept { detail::release_block(block); }

  std::byte* block;
};

}  // namespace

void MemoryPool::State::trim() {
  for (std::byte*& block : free)
    while (block) free_to_system(std::exchange(block, next(block)));
}

MemoryPool::MemoryPool() : state_(new State) {}
MemoryPool::~MemoryPool() {
  drop_reference(state_, [this] {
    state_->closed = true;
    state_->trim();
  });
}

void MemoryPool::trim() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->trim();
  }
  platform::return_freed_memory();
}

std::size_t MemoryPool::system_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->system_bytes;
}

std::byte* detail::acquire_block(std::size_t bytes) {
  const MemoryPool* memory = Execution::current().memory;
  if (!memory) return system_block(bytes, {nullptr, 0, {}});
  MemoryPool::State* pool = memory->state_;
  const std::size_t index = size_class(bytes);
  {
    const std::lock_guard lock(pool->mutex);
    for (std::size_t fits = index; fits < std::min(index + wider, size_classes); ++fits)
      if (std::byte*& list = pool->free[fits]) {
        ++pool->references;
        return std::exchange(list, next(list));
      }
  }
  std::byte* block = system_block(class_bytes(index), {pool, index, {}});
  const std::lock_guard lock(pool->mutex);
  ++pool->references;
  pool->system_bytes += class_bytes(index);
  return block;
}

void detail::release_block(std::byte* block) noexcept {
  const Header& header = header_of(block);
  MemoryPool::State* pool = header.pool;
  if (!pool) return free_to_system(block);
  drop_reference(pool, [&] {
    if (pool->closed) return free_to_system(block);
    next(block) = std::exchange(pool->free[header.size_class], block);
  });
}

detail::Buffer detail::allocate_buffer(std::size_t bytes) {
  std::byte* block = acquire_block(bytes);
  return Buffer(
      block, [](std::byte*) noexcept {}, ControlAllocator<std::byte>(block));
}

}  // namespace qkv
