#include "train/storage/hdf5.h"

#define H5_USE_110_API  // the functions of 1.10, which later versions have, too
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace qkv::hdf5 {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t> && std::is_same_v<herr_t, int>);

/// The path of an object in its file, for messages.
std::string path_of(hid_t object, std::string_view child = "") {
  const ssize_t length = H5Iget_name(object, nullptr, 0);
  std::string path(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) H5Iget_name(object, path.data(), path.size() + 1);
  if (child.empty()) return path;
  return fmt::format("{}/{}", path == "/" ? "" : path, child);
}

/// Throws an error that names the action and the child `name` of `object`.
template <class Result>
Result checked(Result result, std::string_view action, hid_t object, std::string_view name = "") {
  if (result < 0) throw Hdf5Error(fmt::format("{}: cannot {}", path_of(object, name), action));
  return result;
}

Handle property_list(hid_t kind) {
  Handle list(H5Pcreate(kind), H5Pclose);
  require<Hdf5Error>(list.id() >= 0, "HDF5 cannot make a property list");
  return list;
}

/// Creation properties without timestamps, so that equal contents give equal bytes.
Handle timeless(hid_t kind) {
  Handle list = property_list(kind);
  require<Hdf5Error>(H5Pset_obj_track_times(list.id(), false) >= 0, "HDF5 insists on times");
  return list;
}

Handle text_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  require<Hdf5Error>(H5Tset_size(type.id(), size) >= 0 &&
                         H5Tset_cset(type.id(), H5T_CSET_UTF8) >= 0 &&
                         H5Tset_strpad(type.id(), H5T_STR_NULLPAD) >= 0,
                     "HDF5 has no texts of {} bytes", size);
  return type;
}

hid_t file_type(DType dtype) {
  return dtype == DType::float32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
}
hid_t memory_type(DType dtype) {
  return dtype == DType::float32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

Handle space_of(const Shape& shape) {
  std::array<hsize_t, Shape::max_rank> sizes{};
  std::ranges::transform(shape, sizes.begin(), [](Index n) { return static_cast<hsize_t>(n); });
  return Handle(H5Screate_simple(shape.rank(), sizes.data(), nullptr), H5Sclose);
}

void write_dataset(const Handle& group, const std::string& name, hid_t stored, hid_t given,
                   const Shape& shape, const void* data) {
  const Handle space = space_of(shape);
  const Handle properties = timeless(H5P_DATASET_CREATE);
  const Handle dataset(checked(H5Dcreate2(group.id(), name.c_str(), stored, space.id(), H5P_DEFAULT,
                                          properties.id(), H5P_DEFAULT),
                               "create", group.id(), name),
                       H5Dclose);
  if (shape.size() == 0) return;
  checked(H5Dwrite(dataset.id(), given, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "write",
          dataset.id());
}

void require_no_zero_bytes(const Handle& group, const std::string& name,
                           std::span<const std::string> texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    require<Hdf5Error>(texts[i].find('\0') == std::string::npos,
                       "{}: text {} contains a zero byte, which cannot be stored",
                       path_of(group.id(), name), i);
}

/// The bytes that each text takes in a table.
std::size_t cell_size(std::span<const std::string> texts) {
  std::size_t size = 1;  // HDF5 has no type of size 0
  for (const std::string& text : texts) size = std::max(size, text.size());
  return size;
}

void write_padded(const Handle& group, const std::string& name, const Shape& shape,
                  std::span<const std::string> texts) {
  const std::size_t size = cell_size(texts);
  std::string cells(size * texts.size(), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(cells.data() + i * size, size);
  const Handle type = text_type(size);
  write_dataset(group, name, type.id(), type.id(), shape, cells.data());
}

void write_attribute_as(const Handle& group, const std::string& name, hid_t stored, hid_t given,
                        const void* data) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(
      checked(H5Acreate2(group.id(), name.c_str(), stored, space.id(), H5P_DEFAULT, H5P_DEFAULT),
              "create attribute", group.id(), name),
      H5Aclose);
  checked(H5Awrite(attribute.id(), given, data), "write attribute", group.id(), name);
}

/// Called before all else of the library.
void prepare_library() {
  // At the end of the process the library would close a file again that could not be written, and
  // crash.
  [[maybe_unused]] static const herr_t without_exit_handler = H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures become exceptions, not output
}

/// Properties of access to a file in the earliest format, which every reader knows. The default
/// depends on the version of HDF5.
Handle earliest_format() {
  prepare_library();
  Handle access = property_list(H5P_FILE_ACCESS);
  require<Hdf5Error>(H5Pset_libver_bounds(access.id(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18) >= 0,
                     "HDF5 cannot write its earliest format");
  return access;
}

/// Properties of access to a file in memory that is never written to the disk.
Handle in_memory() {
  constexpr std::size_t increment = 1 << 20;
  Handle access = earliest_format();
  require<Hdf5Error>(H5Pset_fapl_core(access.id(), increment, false) >= 0,
                     "HDF5 cannot keep files in memory");
  return access;
}

/// Leaves a file open that could not be written, which HDF5 2 with assertions (Debian's) answers
/// with an abort when it is closed.
int close_if_written(std::int64_t file) {
  return std::uncaught_exceptions() > 0 ? 0 : H5Fclose(file);
}

Handle create_file(const std::string& name, const Handle& access, Handle::Close close) {
  const Handle properties = timeless(H5P_FILE_CREATE);
  Handle file(H5Fcreate(name.c_str(), H5F_ACC_EXCL, properties.id(), access.id()), close);
  require<Hdf5Error>(file.id() >= 0, "cannot be created: {}",
                     std::generic_category().message(errno));
  return file;
}

/// HDF5 identifies files by name, so each needs its own; it also searches the disk for the name,
/// where no file can exist below a device.
Handle create_in_memory() {
  const Handle access = in_memory();
  return create_file(fmt::format("/dev/null/{}", access.id()), access, H5Fclose);
}

}  // namespace

File::File() : file_(create_in_memory()) {}
File::File(const std::filesystem::path& path)
    : file_(create_file(path.string(), earliest_format(), close_if_written)) {}

Group File::root() const {
  return Group(
      Handle(checked(H5Gopen2(file_.id(), "/", H5P_DEFAULT), "open", file_.id()), H5Gclose));
}

void File::flush() const {
  checked(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), "flush", file_.id());
}

std::span<const std::byte> File::image() const {
  flush();
  void** bytes = nullptr;
  checked(H5Fget_vfd_handle(file_.id(), H5P_DEFAULT, reinterpret_cast<void**>(&bytes)),
          "find its bytes", file_.id());
  const ssize_t size =
      checked(H5Fget_file_image(file_.id(), nullptr, 0), "tell its size", file_.id());
  const std::span image(static_cast<std::byte*>(*bytes), static_cast<std::size_t>(size));
  // As H5Fget_file_image has it: nothing says that somebody is writing. Another version of the
  // superblock has something else there.
  constexpr std::size_t version_at = 8, flags_at = 20, flags_size = 4;
  require<Hdf5Error>(image.size() > flags_at + flags_size && image[version_at] == std::byte{},
                     "HDF5 wrote a superblock of version {} instead of 0",
                     static_cast<int>(image[version_at]));
  std::ranges::fill(image.subspan(flags_at, flags_size), std::byte{});
  return image;
}

Group Group::make_group(const std::string& name) {
  if (checked(H5Lexists(group_.id(), name.c_str(), H5P_DEFAULT), "find", group_.id(), name) > 0)
    return Group(
        Handle(checked(H5Gopen2(group_.id(), name.c_str(), H5P_DEFAULT), "open", group_.id(), name),
               H5Gclose));
  const Handle properties = timeless(H5P_GROUP_CREATE);
  return Group(Handle(
      checked(H5Gcreate2(group_.id(), name.c_str(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
              "create", group_.id(), name),
      H5Gclose));
}

void Group::write_attribute(const std::string& name, std::int64_t value) {
  write_attribute_as(group_, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void Group::write_attribute(const std::string& name, const std::string& text) {
  const Handle type = text_type(std::max<std::size_t>(text.size(), 1));
  write_attribute_as(group_, name, type.id(), type.id(), text.c_str());
}

void Group::write_tensor(const std::string& name, const Tensor& tensor) {
  dispatch(tensor.dtype(), [&]<class T>() {
    write_dataset(group_, name, file_type(tensor.dtype()), memory_type(tensor.dtype()),
                  tensor.shape(), tensor.data<T>().data());
  });
}

void Group::write_text(const std::string& name, const std::string& text) {
  require_no_zero_bytes(group_, name, std::span(&text, 1));
  write_padded(group_, name, {}, std::span(&text, 1));
}

void Group::write_texts(const std::string& name, std::span<const std::string> texts) {
  constexpr std::size_t small_table = 1 << 20, most_padding = 8;
  require_no_zero_bytes(group_, name, texts);
  std::string data;
  std::vector<std::int64_t> offsets = {0};
  for (const std::string& text : texts) {
    data += text;
    offsets.push_back(std::ssize(data));
  }
  if (cell_size(texts) * texts.size() <= std::max(small_table, most_padding * data.size()))
    return write_padded(group_, name, {std::ssize(texts)}, texts);
  Group table = make_group(name);
  table.write_text("data", data);
  table.write_integers("offsets", offsets);
}

void Group::write_integers(const std::string& name, std::span<const std::int64_t> values) {
  write_dataset(group_, name, H5T_STD_I64LE, H5T_NATIVE_INT64, {std::ssize(values)}, values.data());
}

}  // namespace qkv::hdf5
