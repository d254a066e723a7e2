#include "train/storage/hdf5_contents.h"

#include <algorithm>
#include <string_view>

#include "train/storage/hdf5.h"

namespace qkv::hdf5 {
namespace {

template <class Map>
const auto& member(const Map& map, const std::string& name, const std::string& path,
                   std::string_view what) {
  const auto found = map.find(name);
  require<Hdf5Error>(found != map.end(), "{}/{}: cannot find {}", path, name, what);
  return found->second;
}

std::vector<std::string> cells_of(const Values& values, int rank, const std::string& path,
                                  const std::string& name) {
  require<Hdf5Error>(values.type == Values::Type::text && values.shape.rank() == rank,
                     "{}/{}: must be fixed-length UTF-8 text of rank {}", path, name, rank);
  const std::string_view all(reinterpret_cast<const char*>(values.bytes.data()),
                             values.bytes.size());
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < all.size(); begin += values.width) {
    const std::string_view cell = all.substr(begin, values.width);
    texts.emplace_back(cell.substr(0, cell.find('\0')));
  }
  return texts;
}

std::vector<std::int64_t> integers_of(const Values& values, int rank, const std::string& path,
                                      const std::string& name) {
  require<Hdf5Error>(values.type == Values::Type::int64 && values.shape.rank() == rank,
                     "{}/{}: must be int64 of rank {}", path, name, rank);
  std::vector<std::int64_t> integers(values.bytes.size() / sizeof(std::int64_t));
  std::ranges::copy(values.bytes, std::as_writable_bytes(std::span(integers)).begin());
  return integers;
}

}  // namespace

std::vector<std::string> Contents::names() const {
  std::vector<std::string> names;
  for (const auto& entry : groups) names.push_back(entry.first);
  for (const auto& entry : datasets) names.push_back(entry.first);
  return names;
}

const Contents& Contents::group(const std::string& name) const {
  return *member(groups, name, path, "the group");
}

std::int64_t Contents::integer_attribute(const std::string& name) const {
  return integers_of(member(attributes, name, path, "the attribute"), 0, path, name).front();
}

std::string Contents::text_attribute(const std::string& name) const {
  return cells_of(member(attributes, name, path, "the attribute"), 0, path, name).front();
}

Tensor Contents::tensor(const std::string& name) const {
  const Values& values = member(datasets, name, path, "the dataset");
  const bool is_float32 = values.type == Values::Type::float32;
  require<Hdf5Error>(is_float32 || values.type == Values::Type::float64,
                     "{}/{}: must hold float32 or float64", path, name);
  Tensor tensor = Tensor::empty(values.shape, is_float32 ? DType::float32 : DType::float64);
  dispatch(tensor.dtype(), [&]<class T>() {
    std::ranges::copy(values.bytes, std::as_writable_bytes(tensor.mutable_data<T>()).begin());
  });
  return tensor;
}

std::string Contents::text(const std::string& name) const {
  return cells_of(member(datasets, name, path, "the dataset"), 0, path, name).front();
}

std::vector<std::string> Contents::texts(const std::string& name) const {
  if (!groups.contains(name))
    return cells_of(member(datasets, name, path, "the texts"), 1, path, name);
  const Contents& table = group(name);
  const std::string data = table.text("data");
  const auto offsets =
      integers_of(member(table.datasets, "offsets", table.path, "the dataset"), 1, path, name);
  require<Hdf5Error>(!offsets.empty() && offsets.front() == 0 &&
                         offsets.back() == std::ssize(data) && std::ranges::is_sorted(offsets),
                     "{}/{}: offsets must ascend from 0 to the {} bytes of data", path, name,
                     data.size());
  std::vector<std::string> texts;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    texts.push_back(data.substr(static_cast<std::size_t>(offsets[i - 1]),
                                static_cast<std::size_t>(offsets[i] - offsets[i - 1])));
  return texts;
}

}  // namespace qkv::hdf5
