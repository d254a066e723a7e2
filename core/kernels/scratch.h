#pragma once

#include <array>

#include "core/memory.h"
#include "core/shape.h"

namespace qkv::kernels {

/// A kernel's scratch buffer, with undefined elements: on the stack when small, else from the pool.
template <class T>
class Scratch {
 public:
  explicit Scratch(Index size)
      : pooled_(static_cast<std::size_t>(size) * sizeof(T) > sizeof(small_)),
        data_(reinterpret_cast<T*>(
            pooled_ ? detail::acquire_block(static_cast<std::size_t>(size) * sizeof(T))
                    : small_.data())) {}
  ~Scratch() {
    if (pooled_) detail::release_block(reinterpret_cast<std::byte*>(data_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  alignas(64) std::array<std::byte, 2048> small_;
  bool pooled_;
  T* data_;
};

}  // namespace qkv::kernels
