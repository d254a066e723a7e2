#include "train/storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/input_file.h"
#include "core/memory_limit.h"
#include "train/storage/strict_json.h"

namespace qkv {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t length_size = 8;               // of the header's length
constexpr std::uint64_t longest_header = 100'000'000;  // as the reference implementation reads
const std::string metadata_name = "__metadata__", dtype_name = "dtype", shape_name = "shape",
                  offsets_name = "data_offsets";

/// A type of elements as files have it.
struct StoredType {
  std::string_view name;
  std::size_t width;                          ///< in bytes
  std::optional<DType> dtype;                 ///< that it becomes; none: the tensor is not read
  float (*widened)(std::uint16_t) = nullptr;  ///< of what is half as wide as float32
};

/// An IEEE 754 number of 16 bits.
float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1Fu,
                      fraction = bits & 0x3FFu;
  if (exponent == 0)
    return std::ldexp(static_cast<float>(fraction), -24) * (sign == 0 ? 1.0F : -1.0F);
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// The upper half of a float32.
float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

constexpr StoredType stored_types[] = {{"F32", 4, DType::float32},
                                       {"F64", 8, DType::float64},
                                       {"F16", 2, DType::float32, from_half},
                                       {"BF16", 2, DType::float32, from_bfloat},
                                       {"BOOL", 1, {}},
                                       {"I8", 1, {}},
                                       {"U8", 1, {}},
                                       {"I16", 2, {}},
                                       {"U16", 2, {}},
                                       {"I32", 4, {}},
                                       {"U32", 4, {}},
                                       {"I64", 8, {}},
                                       {"U64", 8, {}}};

/// As which a tensor is written.
std::string_view name_of(DType dtype) {
  return std::ranges::find(stored_types, dtype, &StoredType::dtype)->name;
}

std::uint64_t bytes_in(const Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.size()) * size_of(tensor.dtype());
}

/// The elements of a tensor in memory.
std::string_view bytes_of(const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&]<class T>() {
    return std::string_view(reinterpret_cast<const char*>(tensor.data<T>().data()),
                            bytes_in(tensor));
  });
}

/// A tensor as the header describes it; its elements are the bytes [begin, end) behind the header.
struct Entry {
  std::string name;
  const StoredType* type;
  Shape shape;
  std::uint64_t begin, end;
};

/// The header as JSON. Throws SafetensorsError as `strict_json`.
Json parsed(std::string_view header) {
  constexpr int deepest = 3;  // the header, an entry, its lists
  try {
    return strict_json(header, deepest);
  } catch (const FileError& error) {
    throw SafetensorsError(fmt::format("the header {}", error.what()));
  }
}

std::map<std::string, std::string> metadata_of(const Json& json) {
  std::map<std::string, std::string> metadata;
  require<SafetensorsError>(json.is_object(), "{} must be an object", metadata_name);
  for (const auto& [name, text] : json.items()) {
    require<SafetensorsError>(text.is_string(), "{}: \"{}\" must be a text", metadata_name, name);
    metadata.emplace(name, text.get<std::string>());
  }
  return metadata;
}

/// The integers of a list, each in [0, 2^63).
std::vector<Index> integers(const Json& entry, const std::string& key) {
  const auto found = entry.find(key);
  require<SafetensorsError>(found != entry.end() && found->is_array(), "{} must be a list", key);
  std::vector<Index> values;
  for (const Json& value : *found) {
    const bool fits =
        value.is_number_unsigned() && std::in_range<Index>(value.get<std::uint64_t>());
    require<SafetensorsError>(fits, "{} must hold integers in [0, 2^63), got {}", key,
                              value.is_number() ? value.dump() : value.type_name());
    values.push_back(value.get<Index>());
  }
  return values;
}

const StoredType& type_of_entry(const Json& entry) {
  const auto found = entry.find(dtype_name);
  require<SafetensorsError>(found != entry.end() && found->is_string(), "{} must be a text",
                            dtype_name);
  const auto row =
      std::ranges::find(stored_types, found->get_ref<const std::string&>(), &StoredType::name);
  require<SafetensorsError>(row != std::end(stored_types),
                            "dtype {} cannot be read; convert it to F32 or F64",
                            found->get<std::string>());
  return *row;
}

Shape shape_of_entry(const Json& entry) {
  const auto sizes = integers(entry, shape_name);
  try {
    return Shape(std::span<const Index>(sizes));
  } catch (const ShapeError& error) {
    throw SafetensorsError(error.what());
  }
}

Entry entry_of(const std::string& name, const Json& json) {
  require<SafetensorsError>(json.is_object(), "must be an object");
  for (const auto& [key, value] : json.items())
    require<SafetensorsError>(key == dtype_name || key == shape_name || key == offsets_name,
                              "unknown key \"{}\"", key);
  const auto offsets = integers(json, offsets_name);
  require<SafetensorsError>(offsets.size() == 2 && offsets[0] <= offsets[1],
                            "{} must be [begin, end]", offsets_name);
  const Entry entry{name, &type_of_entry(json), shape_of_entry(json),
                    static_cast<std::uint64_t>(offsets[0]), static_cast<std::uint64_t>(offsets[1])};
  const std::uint64_t bytes = entry.end - entry.begin, width = entry.type->width;
  require<SafetensorsError>(
      bytes % width == 0 && bytes / width == static_cast<std::uint64_t>(entry.shape.size()),
      "shape {} of {} does not take the {} bytes from {} to {}", entry.shape, entry.type->name,
      bytes, entry.begin, entry.end);
  return entry;
}

/// Sorts the entries by position and checks that they take each of `size` bytes once.
void check_layout(std::vector<Entry>& entries, std::uint64_t size) {
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    require<SafetensorsError>(entry.end <= size,
                              "\"{}\" ends at byte {}, but {} bytes follow the header", entry.name,
                              entry.end, size);
    require<SafetensorsError>(entry.begin >= end,
                              "\"{}\" begins at byte {}, before the end of another tensor at {}",
                              entry.name, entry.begin, end);
    require<SafetensorsError>(entry.begin == end,
                              "bytes {} to {} before \"{}\" belong to no tensor", end, entry.begin,
                              entry.name);
    end = entry.end;
  }
  require<SafetensorsError>(end == size, "bytes {} to {} at the end belong to no tensor", end,
                            size);
}

/// The length of the header, after a look at the file's beginning and size.
std::uint64_t header_length(const InputFile& file) {
  const auto begin = file.read(0, length_size + 1);
  std::uint64_t length = 0;
  require<UserError>(begin.size() == length_size + 1 && begin.back() == std::byte{'{'},
                     "is not a safetensors file");
  std::memcpy(&length, begin.data(), sizeof length);
  require<SafetensorsError>(length <= longest_header,
                            "its header of {} bytes is longer than {}, the most that the format "
                            "allows",
                            length, longest_header);
  require<SafetensorsError>(length <= file.size() - length_size,
                            "its header of {} bytes does not fit the file of {}", length,
                            file.size());
  constexpr std::uint64_t copies = 3;  // widened to float32, and the bytes of one tensor
  require<SafetensorsError>(file.size() <= memory_limit() / copies,
                            "holds {}; reading it takes {}, and the process can have {} of memory",
                            memory_size(static_cast<double>(file.size())),
                            memory_size(static_cast<double>(copies * file.size())),
                            memory_size(static_cast<double>(memory_limit())));
  return length;
}

Tensor read_tensor(const InputFile& file, std::uint64_t data_begin, const Entry& entry) {
  const auto bytes = file.read(data_begin + entry.begin, entry.end - entry.begin);
  Tensor tensor = Tensor::empty(entry.shape, *entry.type->dtype);
  if (entry.type->widened) {
    for (std::size_t i = 0; float& element : tensor.mutable_data<float>()) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, &bytes[i], sizeof bits);
      element = entry.type->widened(bits);
      i += sizeof bits;
    }
    return tensor;
  }
  dispatch(tensor.dtype(), [&]<class T>() {
    std::ranges::copy(bytes, std::as_writable_bytes(tensor.mutable_data<T>()).begin());
  });
  return tensor;
}

Safetensors read(const InputFile& file) {
  const std::uint64_t length = header_length(file);
  const auto bytes = file.read(length_size, length);
  const Json header = parsed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Safetensors contents;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == metadata_name) {
      contents.metadata = metadata_of(value);
      continue;
    }
    try {
      entries.push_back(entry_of(name, value));
    } catch (const SafetensorsError& error) {
      throw SafetensorsError(fmt::format("\"{}\": {}", name, error.what()));
    }
  }
  const std::uint64_t data_begin = length_size + length;
  check_layout(entries, file.size() - data_begin);
  for (const Entry& entry : entries) {
    if (entry.type->dtype)
      contents.tensors.emplace(entry.name, read_tensor(file, data_begin, entry));
    else
      contents.integers.push_back(entry.name);
  }
  return contents;
}

}  // namespace

std::string safetensors_bytes(const Safetensors& contents) {
  Json header = Json::object();
  if (!contents.metadata.empty()) header[metadata_name] = contents.metadata;
  std::uint64_t end = 0;
  std::vector<std::string_view> parts;
  const auto add = [&](DType dtype) {
    for (const auto& [name, tensor] : contents.tensors) {
      if (tensor.dtype() != dtype) continue;
      require<SafetensorsError>(name != metadata_name, "a tensor cannot be called {}", name);
      const std::uint64_t begin = end;
      end += bytes_in(tensor);
      header[name] = {
          {dtype_name, name_of(dtype)},
          {shape_name, std::vector<Index>(tensor.shape().begin(), tensor.shape().end())},
          {offsets_name, {begin, end}}};
      parts.push_back(bytes_of(tensor));
    }
  };
  // The wider ones first, so that every element is aligned.
  for (const DType dtype : {DType::float64, DType::float32}) add(dtype);
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::type_error&) {
    throw SafetensorsError("names and texts must be UTF-8");
  }
  text.resize((text.size() + length_size - 1) / length_size * length_size, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes.reserve(sizeof length + length + end);
  bytes += text;
  for (const std::string_view part : parts) bytes += part;
  return bytes;
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  const auto named = [&](const Error& error) {
    return fmt::format("{}: {}", path.string(), error.what());
  };
  try {
    return read(file);
  } catch (const UserError& error) {
    throw UserError(named(error));
  } catch (const SafetensorsError& error) {
    throw SafetensorsError(named(error));
  }
}

}  // namespace qkv
