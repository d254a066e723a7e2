#include "inspect/activations.h"

#include "inspect/explain.h"
#include "inspect/labelled_text.h"
#include "train/storage/hdf5.h"

namespace qkv {
namespace {

/// Writes a tensor below a group, its path dotted.
void write_below(hdf5::Group& group, const std::string& path, const Tensor& value) {
  const std::size_t dot = path.find('.');
  if (dot == path.npos) return group.write_tensor(path, value);
  hdf5::Group child = group.make_group(path.substr(0, dot));
  write_below(child, path.substr(dot + 1), value);
}

void write_sentence(const LoadedModel& model, const LabelledText& line, hdf5::Group& group) {
  group.write_attribute("label", line.label);
  group.write_attribute("index", line.index);
  group.write_texts("tokens", line.sentence.words);
  group.write_integers("ids",
                       std::vector<Index>(line.sentence.ids.begin(), line.sentence.ids.end()));
  const Recorder activations = recorded(model, line.sentence);
  for (const Recorder::Record& record : activations.all()) {
    if (record.value.rank() == 0) continue;  // a constant of a layer
    const std::vector<Index> sizes(record.value.shape().begin() + 1, record.value.shape().end());
    write_below(group, record.path, record.value.with_shape(Shape(sizes)));
  }
}

void write_file(const LoadedModel& model, const std::vector<LabelledText>& lines,
                const std::filesystem::path& output, ReadCallback& callback) try {
  hdf5::File file(output);
  hdf5::Group root = file.root();
  root.write_attribute("format", "qkv-activations");
  root.write_attribute("version", 1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    callback.on_item("writing", i, lines.size());
    hdf5::Group group = root.make_group(fmt::format("{:08}", i));
    write_sentence(model, lines[i], group);
  }
  file.flush();
} catch (const hdf5::Hdf5Error& error) {
  throw FileError(fmt::format("{}: {}", output.string(), error.what()));
}

}  // namespace

Index write_activations(const LoadedModel& model, const std::filesystem::path& data,
                        const std::filesystem::path& output, ReadCallback& callback) {
  const auto lines = read_labelled_texts(model, data, callback);
  std::error_code unknown;
  require<UserError>(!std::filesystem::exists(output, unknown),
                     "{}: exists; name another file, or remove it", output.string());
  try {
    write_file(model, lines, output, callback);
  } catch (...) {
    std::filesystem::remove(output, unknown);
    throw;
  }
  return std::ssize(lines);
}

}  // namespace qkv
