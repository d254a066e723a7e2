#include "layers/key_value_cache.h"

#include <algorithm>

#include "core/ops.h"

namespace qkv {
namespace {

void copy_rows(const Tensor& from, Tensor& to, Index first) {
  const auto offset = static_cast<std::size_t>(first * to.dim(2));
  dispatch(from.dtype(), [&]<class T>() {
    std::ranges::copy(from.data<T>(), to.shared_mutable_data<T>().subspan(offset).begin());
  });
}

}  // namespace

void GrowingTensor::append(const Tensor& next) {
  if (!all_) {
    all_ = next;
    return;
  }
  if (all_.dim(0) != 1 || all_.node() || next.node()) {
    all_ = concatenate({all_, next}, 1);
    room_ = {};
    return;
  }
  const Index before = all_.dim(1), after = before + next.dim(1), width = all_.dim(2);
  if (!room_ || room_.dim(1) < after) {
    room_ = Tensor::empty({1, 2 * after, width}, all_.dtype());
    copy_rows(all_, room_, 0);
  }
  copy_rows(next, room_, before);
  all_ = room_.prefix({1, after, width});
}

std::optional<KeysValues> KeyValueCache::find(const Module& attention) const {
  const auto found = entries_.find(&attention);
  if (found == entries_.end()) return std::nullopt;
  return KeysValues{found->second.k.all(), found->second.v.all()};
}

KeysValues KeyValueCache::append(const Module& attention, const KeysValues& next) {
  Entry& entry = entries_[&attention];
  entry.k.append(next.k);
  entry.v.append(next.v);
  return {entry.k.all(), entry.v.all()};
}

}  // namespace qkv
