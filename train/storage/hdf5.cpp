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

#include "train/storage/hdf5_structure.h"

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

/// Throws when the rank is too high or the product of sizes overflows; `what` names the owner.
Shape shape_of(const Handle& space, const std::string& what) {
  const int rank = H5Sget_simple_extent_ndims(space.id());
  require<Hdf5Error>(
      H5Sget_simple_extent_type(space.id()) != H5S_NULL && rank >= 0 && rank <= Shape::max_rank,
      "{}: must have at most {} axes", what, Shape::max_rank);
  std::array<hsize_t, Shape::max_rank> sizes{};
  H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
  std::array<Index, Shape::max_rank> signed_sizes{};
  std::ranges::transform(sizes, signed_sizes.begin(), [](hsize_t n) { return Index(n); });
  return Shape(std::span(signed_sizes).first(static_cast<std::size_t>(rank)));
}

std::uint64_t file_size(hid_t object) {
  const Handle file(H5Iget_file_id(object), H5Fclose);
  hsize_t size = 0;
  checked(H5Fget_filesize(file.id(), &size), "tell the file's size", object);
  return size;
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

/// An object that one hard link leads to: no soft or external links, no cycles.
Handle open_object(const Handle& group, const std::string& name) {
  H5L_info_t link;
  checked(H5Lget_info(group.id(), name.c_str(), &link, H5P_DEFAULT), "find it", group.id(), name);
  require<Hdf5Error>(link.type == H5L_TYPE_HARD, "{}: must not be a soft or external link",
                     path_of(group.id(), name));
  Handle object(checked(H5Oopen(group.id(), name.c_str(), H5P_DEFAULT), "open", group.id(), name),
                H5Oclose);
  H5O_info_t info;
  checked(H5Oget_info(object.id(), &info), "open", group.id(), name);
  require<Hdf5Error>(info.rc == 1, "{}: must have one name", path_of(group.id(), name));
  return object;
}

struct Dataset {
  Handle dataset;
  Handle type;
  Shape shape;
};

/// A dataset that is stored contiguously, so that its size cannot exceed the file's.
Dataset open_dataset(const Handle& group, const std::string& name) {
  const std::string path = path_of(group.id(), name);
  Handle object = open_object(group, name);
  require<Hdf5Error>(H5Iget_type(object.id()) == H5I_DATASET, "{}: must be a dataset", path);
  const Handle properties(H5Dget_create_plist(object.id()), H5Pclose);
  require<Hdf5Error>(H5Pget_layout(properties.id()) == H5D_CONTIGUOUS &&
                         H5Pget_external_count(properties.id()) == 0,
                     "{}: must be stored in one piece, without filters", path);

  Handle type(H5Dget_type(object.id()), H5Tclose);
  const Handle space(H5Dget_space(object.id()), H5Sclose);
  const Shape shape = shape_of(space, path);
  const auto count = static_cast<std::uint64_t>(shape.size());
  const std::uint64_t limit = file_size(object.id());
  const std::size_t size = H5Tget_size(type.id());
  require<Hdf5Error>(size > 0 && count <= limit / size, "{}: claims to be larger than the file",
                     path);
  const haddr_t offset = H5Dget_offset(object.id());
  require<Hdf5Error>(count == 0 || (H5Dget_storage_size(object.id()) == count * size &&
                                    offset != HADDR_UNDEF && offset <= limit - count * size),
                     "{}: does not lie inside the file", path);
  return {std::move(object), std::move(type), shape};
}

std::vector<std::string> read_padded(const Handle& group, const std::string& name, int rank) {
  const auto [dataset, type, shape] = open_dataset(group, name);
  const std::size_t size = H5Tget_size(type.id());
  require<Hdf5Error>(H5Tequal(type.id(), text_type(size).id()) > 0 && shape.rank() == rank,
                     "{}: must be fixed-length UTF-8 text of rank {}", path_of(group.id(), name),
                     rank);
  const auto count = static_cast<std::size_t>(shape.size());
  std::string cells(size * count, '\0');
  if (count > 0)
    checked(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()), "read",
            group.id(), name);
  std::vector<std::string> texts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view cell = std::string_view(cells).substr(i * size, size);
    texts[i] = cell.substr(0, cell.find('\0'));
  }
  return texts;
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

struct Attribute {
  Handle attribute;
  Handle type;
};

Attribute open_attribute(const Handle& group, const std::string& name) {
  Handle attribute(
      checked(H5Aopen(group.id(), name.c_str(), H5P_DEFAULT), "find attribute", group.id(), name),
      H5Aclose);
  const Handle space(H5Aget_space(attribute.id()), H5Sclose);
  require<Hdf5Error>(H5Sget_simple_extent_type(space.id()) == H5S_SCALAR,
                     "{}: attribute must be a scalar", path_of(group.id(), name));
  Handle type(H5Aget_type(attribute.id()), H5Tclose);
  return {std::move(attribute), std::move(type)};
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

/// HDF5 identifies files by name, so each needs its own; it also searches the disk for the name,
/// where no file can exist below a device.
std::string unique_name(const Handle& access) {
  return fmt::format("/dev/null/{}", access.id());
}

Handle create_file() {
  const Handle access = in_memory();
  const Handle properties = timeless(H5P_FILE_CREATE);
  Handle file(H5Fcreate(unique_name(access).c_str(), H5F_ACC_EXCL, properties.id(), access.id()),
              H5Fclose);
  require<Hdf5Error>(file.id() >= 0, "HDF5 cannot create a file in memory");
  return file;
}

/// Leaves a file open that could not be written, which HDF5 2 with assertions (Debian's) answers
/// with an abort when it is closed.
int close_if_written(std::int64_t file) {
  return std::uncaught_exceptions() > 0 ? 0 : H5Fclose(file);
}

Handle create_file(const std::filesystem::path& path) {
  const Handle access = earliest_format();
  const Handle properties = timeless(H5P_FILE_CREATE);
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_EXCL, properties.id(), access.id()),
              close_if_written);
  require<Hdf5Error>(file.id() >= 0, "cannot be created: {}",
                     std::generic_category().message(errno));
  return file;
}

/// What HDF5 calls to copy an image that it is given: it shares the one of `udata` instead.
H5FD_file_image_callbacks_t sharing(std::byte* image) {
  return {
      .image_malloc = [](std::size_t, H5FD_file_image_op_t, void* udata) { return udata; },
      .image_memcpy = [](void* to, const void*, std::size_t, H5FD_file_image_op_t,
                         void*) { return to; },
      .image_realloc = [](void*, std::size_t, H5FD_file_image_op_t, void*) -> void* {
        return nullptr;  // of a file that grows
      },
      .image_free = [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; },
      .udata_copy = [](void* udata) { return udata; },
      .udata_free = [](void*) -> herr_t { return 0; },
      .udata = image,
  };
}

Handle open_image(std::span<std::byte> image) {
  const Handle access = in_memory();
  H5FD_file_image_callbacks_t callbacks = sharing(image.data());
  require<Hdf5Error>(H5Pset_file_image_callbacks(access.id(), &callbacks) >= 0 &&
                         H5Pset_file_image(access.id(), image.data(), image.size()) >= 0,
                     "HDF5 cannot take {} bytes", image.size());
  Handle file(H5Fopen(unique_name(access).c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
  require<Hdf5Error>(file.id() >= 0, "is not an HDF5 file");
  return file;
}

}  // namespace

File::File() : file_(create_file()) {}
File::File(const std::filesystem::path& path) : file_(create_file(path)) {}
File::File(std::span<std::byte> image) : file_((check_structure(image), open_image(image))) {}

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
    return group(name);
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

std::vector<std::string> Group::names() const {
  H5G_info_t info;
  checked(H5Gget_info(group_.id(), &info), "list", group_.id());
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto read = [&](char* name, std::size_t size) {
      return checked(H5Lget_name_by_idx(group_.id(), ".", H5_INDEX_NAME, H5_ITER_INC, i, name, size,
                                        H5P_DEFAULT),
                     "list", group_.id());
    };
    std::string& name = names.emplace_back(static_cast<std::size_t>(read(nullptr, 0)), '\0');
    read(name.data(), name.size() + 1);
  }
  return names;
}

bool Group::holds_group(const std::string& name) const {
  return H5Iget_type(open_object(group_, name).id()) == H5I_GROUP;
}

bool Group::holds_attribute(const std::string& name) const {
  return checked(H5Aexists(group_.id(), name.c_str()), "find attribute", group_.id(), name) > 0;
}

Group Group::group(const std::string& name) const {
  Handle object = open_object(group_, name);
  require<Hdf5Error>(H5Iget_type(object.id()) == H5I_GROUP, "{}: must be a group",
                     path_of(group_.id(), name));
  return Group(std::move(object));
}

std::int64_t Group::integer_attribute(const std::string& name) const {
  const auto [attribute, type] = open_attribute(group_, name);
  require<Hdf5Error>(H5Tequal(type.id(), H5T_STD_I64LE) > 0, "{}: attribute must be an int64",
                     path_of(group_.id(), name));
  std::int64_t value = 0;
  checked(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), "read attribute", group_.id(), name);
  return value;
}

std::string Group::text_attribute(const std::string& name) const {
  const auto [attribute, type] = open_attribute(group_, name);
  const std::size_t size = H5Tget_size(type.id());
  require<Hdf5Error>(H5Tequal(type.id(), text_type(std::max<std::size_t>(size, 1)).id()) > 0 &&
                         size <= file_size(group_.id()),
                     "{}: attribute must be fixed-length UTF-8 text", path_of(group_.id(), name));
  std::string text(size, '\0');
  checked(H5Aread(attribute.id(), type.id(), text.data()), "read attribute", group_.id(), name);
  return text.substr(0, text.find('\0'));
}

Tensor Group::tensor(const std::string& name) const {
  const Dataset stored = open_dataset(group_, name);
  const bool is_float32 = H5Tequal(stored.type.id(), file_type(DType::float32)) > 0;
  require<Hdf5Error>(is_float32 || H5Tequal(stored.type.id(), file_type(DType::float64)) > 0,
                     "{}: must hold float32 or float64", path_of(group_.id(), name));
  Tensor tensor = Tensor::empty(stored.shape, is_float32 ? DType::float32 : DType::float64);
  if (tensor.size() == 0) return tensor;
  dispatch(tensor.dtype(), [&]<class T>() {
    checked(H5Dread(stored.dataset.id(), memory_type(tensor.dtype()), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                    tensor.mutable_data<T>().data()),
            "read", group_.id(), name);
  });
  return tensor;
}

std::string Group::text(const std::string& name) const {
  return read_padded(group_, name, 0)[0];
}

std::vector<std::string> Group::texts(const std::string& name) const {
  if (!holds_group(name)) return read_padded(group_, name, 1);
  const Group table = group(name);
  const std::string data = table.text("data");
  const std::vector<std::int64_t> offsets = table.integers("offsets");
  require<Hdf5Error>(!offsets.empty() && offsets.front() == 0 &&
                         offsets.back() == std::ssize(data) && std::ranges::is_sorted(offsets),
                     "{}: offsets must ascend from 0 to the {} bytes of data",
                     path_of(group_.id(), name), data.size());
  std::vector<std::string> texts;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    texts.push_back(data.substr(static_cast<std::size_t>(offsets[i - 1]),
                                static_cast<std::size_t>(offsets[i] - offsets[i - 1])));
  return texts;
}

std::vector<std::int64_t> Group::integers(const std::string& name) const {
  const auto [dataset, type, shape] = open_dataset(group_, name);
  require<Hdf5Error>(H5Tequal(type.id(), H5T_STD_I64LE) > 0 && shape.rank() == 1,
                     "{}: must be int64 of rank 1", path_of(group_.id(), name));
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.size()));
  if (!values.empty())
    checked(H5Dread(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
            "read", group_.id(), name);
  return values;
}

std::optional<std::uint64_t> stated_length(std::span<const std::byte> bytes) {
  // Superblock version 0: signature, 16 bytes of versions and sizes, two addresses, the length.
  constexpr std::string_view start("\x89HDF\r\n\x1a\n\0", 9);
  constexpr std::size_t position = 40;
  std::uint64_t length = 0;
  if (bytes.size() < position + sizeof length ||
      std::memcmp(bytes.data(), start.data(), start.size()) != 0)
    return std::nullopt;
  for (std::size_t i = sizeof length; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(bytes[position + i]);
  return length;
}

}  // namespace qkv::hdf5
