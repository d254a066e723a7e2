#include "layers/key_value_cache.h"

#include "core/ops.h"

namespace qkv {

const KeysValues* KeyValueCache::find(const Module& attention) const {
  const auto found = entries_.find(&attention);
  return found == entries_.end() ? nullptr : &found->second;
}

const KeysValues& KeyValueCache::append(const Module& attention, const KeysValues& next) {
  const auto [entry, is_new] = entries_.try_emplace(&attention, next);
  KeysValues& all = entry->second;
  if (!is_new) all = {concatenate({all.k, next.k}, 1), concatenate({all.v, next.v}, 1)};
  return all;
}

}  // namespace qkv
