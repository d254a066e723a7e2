#include "train/storage/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string_view>

#include "core/memory_limit.h"
#include "train/storage/durable_file.h"
#include "train/storage/hdf5.h"
#include "train/storage/hdf5_reader.h"
#include "train/storage/seal.h"

namespace qkv {
namespace {

using hdf5::Contents;
using hdf5::Group;
using Tensors = std::map<std::string, Tensor>;

constexpr std::string_view format = "qkv-checkpoint";
constexpr std::int64_t version = 1;
constexpr std::size_t max_path = 1024;
constexpr std::string_view metrics_name = "metrics";
/// The texts of /progress that a checkpoint may lack.
constexpr std::array optional_texts = {
    std::pair<std::string_view, std::string Checkpoint::*>{"data_hash", &Checkpoint::data_hash},
    std::pair<std::string_view, std::string Checkpoint::*>{"valid_hash", &Checkpoint::valid_hash},
    std::pair<std::string_view, std::string Checkpoint::*>{"init", &Checkpoint::init}};
const std::string config_name = "config";
constexpr std::int64_t max_step = std::int64_t{1} << 53;

/// Throws unless `name` can be one part of a path.
void check_name(const std::string& name, const std::string& path) {
  constexpr std::string_view separators("./\0", 3);
  require<CheckpointError>(!name.empty() && name.find_first_of(separators) == std::string::npos,
                           "'{}' is not a name for a checkpoint's contents", path);
}

void write_tensors(Group group, const Tensors& tensors) {
  for (const auto& [path, tensor] : tensors) {
    require<CheckpointError>(path.size() <= max_path, "'{}' is longer than {} bytes", path,
                             max_path);
    std::optional<Group> parent;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1) {
      const std::string part = path.substr(begin, dot - begin);
      check_name(part, path);
      parent = (parent ? *parent : group).make_group(part);
    }
    const std::string name = path.substr(begin);
    check_name(name, path);
    (parent ? *parent : group).write_tensor(name, tensor);
  }
}

void read_tensors(const Contents& group, const std::string& prefix, Tensors& tensors) {
  for (const std::string& name : group.names()) {
    const std::string path = prefix + name;
    check_name(name, path);
    require<CheckpointError>(path.size() <= max_path, "'{}' is longer than {} bytes", path,
                             max_path);
    if (group.groups.contains(name))
      read_tensors(group.group(name), path + ".", tensors);
    else
      tensors.emplace(path, group.tensor(name));
  }
}

hdf5::File encode(const Checkpoint& checkpoint) {
  hdf5::File file;
  Group root = file.root();
  root.write_attribute("format", std::string(format));
  root.write_attribute("version", version);
  root.write_attribute("qkv_version", QKV_VERSION);
  root.write_attribute("step", checkpoint.step);
  if (checkpoint.config.size() <= hdf5::max_attribute_text)
    root.write_attribute(config_name, checkpoint.config);
  else
    root.write_text(config_name, checkpoint.config);
  write_tensors(root.make_group("model"), checkpoint.model);
  write_tensors(root.make_group("optimizer"), checkpoint.optimizer);

  Group vocabulary = root.make_group("vocabulary");
  for (const auto& [name, texts] : checkpoint.vocabulary) {
    check_name(name, name);
    vocabulary.write_texts(name, texts);
  }
  Group progress = root.make_group("progress");
  progress.write_text(std::string(metrics_name), checkpoint.metrics);
  for (const auto& [name, text] : optional_texts)
    if (!(checkpoint.*text).empty()) progress.write_text(std::string(name), checkpoint.*text);
  for (const auto& [name, value] : checkpoint.progress) {
    check_name(name, name);
    progress.write_tensor(name, Tensor::scalar(value, DType::float64));
  }
  return file;
}

/// Whether a file begins as HDF5, or is a prefix of such a beginning.
bool begins_as_hdf5(std::span<const std::byte> bytes) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  const std::size_t length = std::min(bytes.size(), signature.size());
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), length);
  return signature.starts_with(begin);
}

/// Looks at both ends of a file before anything is allocated for what may be no checkpoint.
void check_ends(const InputFile& file) {
  const std::uint64_t size = file.size();
  const auto begin = file.read(0, hdf5::superblock_size),
             end = file.read(size - std::min<std::uint64_t>(size, seal_size), seal_size);
  require<UserError>(begins_as_hdf5(begin) || has_seal(end), "is not a qkv checkpoint");
  const std::uint64_t length = hdf5::stated_length(begin).value_or(0);
  require<CheckpointError>(
      size >= length,
      "is truncated: it holds {} bytes, {} were written; take the previous checkpoint", size,
      length + seal_size);
  check_sealed_length(end, size);
  constexpr std::uint64_t copies = 2;  // these bytes, and the tensors
  require<FileError>(size <= memory_limit() / copies,
                     "holds {}; reading it takes {}, and the process can have {} of memory",
                     memory_size(static_cast<double>(size)),
                     memory_size(static_cast<double>(copies * size)),
                     memory_size(static_cast<double>(memory_limit())));
}

void check_version(const Contents& root) {
  require<UserError>(root.text_attribute("format") == format, "is not a qkv checkpoint");
  const std::int64_t found = root.integer_attribute("version");
  require<UserError>(
      found == version,
      "has version {} of the format, by qkv {}; this is qkv {}, which reads version {}", found,
      root.text_attribute("qkv_version"), QKV_VERSION, version);
}

Checkpoint decode(const Contents& root, CheckpointPart part) {
  check_version(root);
  Checkpoint checkpoint;
  checkpoint.step = root.integer_attribute("step");
  require<CheckpointError>(checkpoint.step >= 0 && checkpoint.step <= max_step,
                           "/step: must be in [0, 2^53], got {}", checkpoint.step);
  checkpoint.config = root.attributes.contains(config_name) ? root.text_attribute(config_name)
                                                            : root.text(config_name);
  read_tensors(root.group("model"), "", checkpoint.model);
  if (part == CheckpointPart::all) read_tensors(root.group("optimizer"), "", checkpoint.optimizer);

  const Contents& vocabulary = root.group("vocabulary");
  for (const std::string& name : vocabulary.names()) {
    check_name(name, name);
    checkpoint.vocabulary.emplace(name, vocabulary.texts(name));
  }
  const Contents& progress = root.group("progress");
  for (const std::string& name : progress.names()) {
    if (name == metrics_name) continue;
    check_name(name, name);
    const auto known =
        std::ranges::find(optional_texts, name, [](const auto& t) { return t.first; });
    if (known != optional_texts.end()) {
      checkpoint.*known->second = progress.text(name);
      continue;
    }
    const Tensor value = progress.tensor(name);
    require<CheckpointError>(value.rank() == 0 && value.dtype() == DType::float64,
                             "/progress/{}: must be a float64 scalar", name);
    checkpoint.progress.emplace(name, value.item());
  }
  checkpoint.metrics = progress.text(std::string(metrics_name));
  return checkpoint;
}

bool is_finite(const Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    return std::ranges::all_of(x.data<T>(), [](T v) { return std::isfinite(v); });
  });
}

/// Calls `f` and adds the file to its errors.
template <class F>
auto naming(const std::filesystem::path& path, F f) {
  try {
    return f();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path.string(), error.what()));
  } catch (const Error& error) {
    throw CheckpointError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  static std::mutex library;
  const std::lock_guard one_thread(library);  // HDF5 serves one thread at a time
  const hdf5::File file = naming(path, [&] { return encode(checkpoint); });
  const auto content = naming(path, [&] { return file.image(); });
  write_durably(path, content, seal_of(content));
}

Checkpoint read_checkpoint(const std::filesystem::path& path, CheckpointPart part) {
  const InputFile input(path);
  return naming(path, [&] {
    check_ends(input);
    const std::vector<std::byte> bytes = input.read(0, input.size());
    return decode(hdf5::read(unseal(bytes)), part);
  });
}

std::string non_finite_tensor(const Checkpoint& checkpoint) {
  for (const auto* tensors : {&checkpoint.model, &checkpoint.optimizer})
    for (const auto& [path, tensor] : *tensors)
      if (!is_finite(tensor)) return path;
  return "";
}

std::optional<std::int64_t> best_step_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.progress.find("best_step");
  // A value out of range cannot be converted.
  if (found == checkpoint.progress.end() || !(found->second >= 0) ||
      found->second > static_cast<double>(checkpoint.step))
    return std::nullopt;
  return static_cast<std::int64_t>(found->second);
}

}  // namespace qkv
