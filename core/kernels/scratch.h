#pragma once

#include "core/memory.h"
#include "core/shape.h"

namespace qkv::kernels {

/// Memory for a kernel's intermediate numbers, with undefined contents.
template <class T>
class Scratch {
 public:
  explicit Scratch(Index size)
      : data_(reinterpret_cast<T*>(acquire_block(static_cast<std::size_t>(size) * sizeof(T)))) {}
  ~Scratch() { release_block(reinterpret_cast<std::byte*>(data_)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  T* data_;
};

}  // namespace qkv::kernels
