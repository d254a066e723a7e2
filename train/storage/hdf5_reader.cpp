#include "train/storage/hdf5_reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "train/storage/hdf5.h"

namespace qkv::hdf5 {
namespace {

using namespace std::string_view_literals;

constexpr auto signature = "\x89HDF\r\n\x1a\n\0"sv;  // and the superblock's version
constexpr std::uint64_t undefined = ~std::uint64_t{0};
constexpr std::uint64_t leaf_k = 4, internal_k = 16;  // half the children of a node
constexpr int max_depth = 64;                         // of groups
constexpr std::size_t max_path = 2048;                // bytes
constexpr std::uint64_t max_level = 4;                // of a tree: 8 million children

enum MessageType : std::uint16_t {
  nil = 0x0,
  dataspace = 0x1,
  datatype = 0x3,
  layout = 0x8,
  attribute = 0xC,
  continuation = 0x10,
  symbol_table = 0x11
};

/// The fields of a structure, one after the other.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, std::uint64_t address)
      : rest_(bytes), address_(address) {}

  std::uint64_t left() const { return rest_.size(); }
  std::uint64_t u8() { return integer(1); }
  std::uint64_t u16() { return integer(2); }
  std::uint64_t u32() { return integer(4); }
  std::uint64_t u64() { return integer(8); }
  std::span<const std::byte> bytes(std::uint64_t size) {
    demand(size <= left());
    const auto result = rest_.first(size);
    rest_ = rest_.subspan(size);
    address_ += size;
    return result;
  }
  Fields part(std::uint64_t size) {
    const std::uint64_t begin = address_;
    return {bytes(size), begin};
  }
  std::string_view text(std::uint64_t size) {
    const auto found = bytes(size);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  /// Fields that can have one value only.
  void expect(std::string_view value) { demand(text(value.size()) == value); }
  void expect_zeros(std::uint64_t count) {
    demand(text(count).find_first_not_of('\0') == std::string_view::npos);
  }
  /// Throws, naming where the fields that were read last end.
  void demand(bool ok) const {
    require<Hdf5Error>(ok, "is no checkpoint of qkv: its structure is wrong before byte {}",
                       address_);
  }

 private:
  std::uint64_t integer(std::size_t size) {
    const std::string_view found = text(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(found[i]);
    return value;
  }

  std::span<const std::byte> rest_;
  std::uint64_t address_;
};

std::uint64_t padded(std::uint64_t size) {
  return (size + 7) / 8 * 8;
}

struct Message {
  std::uint64_t type;
  Fields fields;
};

struct ElementType {
  Values::Type type;
  std::size_t width;
};

ElementType type_of(Fields fields) {
  struct Number {
    std::string_view bytes;
    ElementType type;
  };
  constexpr std::array numbers = {
      Number{"\x11\x20\x1f\0\4\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0"sv,
             {Values::Type::float32, 4}},
      Number{"\x11\x20\x3f\0\x8\0\0\0\0\0\x40\0\x34\x0b\0\x34\xff\3\0\0"sv,
             {Values::Type::float64, 8}},
      Number{"\x10\x8\0\0\x8\0\0\0\0\0\x40\0"sv, {Values::Type::int64, 8}}};
  Fields copy = fields;
  const std::string_view all = copy.text(copy.left());
  for (const Number& number : numbers)
    if (all.starts_with(number.bytes)) {
      copy.demand(all.find_first_not_of('\0', number.bytes.size()) == all.npos);
      return number.type;
    }
  fields.expect("\x13\x11\0\0"sv);  // zero-padded UTF-8
  const std::uint64_t width = fields.u32();
  fields.demand(width > 0);
  fields.expect_zeros(fields.left());
  return {Values::Type::text, width};
}

/// A shape of at most `most` elements.
Shape shape_of(Fields fields, std::uint64_t most) {
  fields.demand(fields.u8() == 1);
  const std::uint64_t rank = fields.u8(), has_maximum = fields.u8();
  fields.demand(rank <= Shape::max_rank && has_maximum <= 1);
  fields.expect_zeros(5);
  std::vector<Index> sizes;
  std::uint64_t count = 1;
  for (std::uint64_t i = 0; i < rank; ++i) {
    const std::uint64_t size = fields.u64();
    fields.demand(size <= most && (size == 0 || count <= most / size));
    count *= size;
    sizes.push_back(static_cast<Index>(size));
  }
  if (has_maximum) fields.text(8 * rank);
  fields.expect_zeros(fields.left());
  return Shape(std::span<const Index>(sizes));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  Contents read_file() {
    Fields superblock = structure(0, 96);
    superblock.expect(signature);
    superblock.expect("\0\0\0\0\x8\x8\0"sv);
    superblock.demand(superblock.u16() == leaf_k && superblock.u16() == internal_k);
    superblock.expect_zeros(4 + 8);  // flags, base address
    superblock.demand(superblock.u64() == undefined);
    superblock.demand(superblock.u64() == file_.size());
    superblock.demand(superblock.u64() == undefined);
    superblock.u64();  // the root's name
    return group_of(messages_of(superblock.u64()), "", 0);
  }

 private:
  /// The structure at an address.
  Fields structure(std::uint64_t address, std::uint64_t size) {
    require<Hdf5Error>(address <= file_.size() && size <= file_.size() - address,
                       "is no checkpoint of qkv: it has a structure of {} bytes at byte {} of {}",
                       size, address, file_.size());
    read_ += size;
    require<Hdf5Error>(read_ <= file_.size(),
                       "is no checkpoint of qkv: structures overlap at byte {}", address);
    return {file_.subspan(address, size), address};
  }

  /// The messages of an object header, version 1, and of its continuations; at least one.
  std::vector<Message> messages_of(std::uint64_t header) {
    Fields prefix = structure(header, 16);
    prefix.demand(prefix.u16() == 1);  // version
    const std::uint64_t count = prefix.u16();
    prefix.demand(prefix.u32() == 1);  // one link leads here
    std::vector<Fields> chunks = {structure(header + 16, prefix.u32())};
    std::vector<Message> messages;
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i)
      for (Fields chunk = chunks[i]; chunk.left() > 0;) {
        chunk.demand(++found <= count);
        const std::uint64_t type = chunk.u16(), size = chunk.u16();
        chunk.demand(size % 8 == 0 && chunk.u8() <= 1);  // not shared
        chunk.expect_zeros(3);
        Fields fields = chunk.part(size);
        if (type != continuation) {
          messages.push_back({type, fields});
          continue;
        }
        const std::uint64_t address = fields.u64();
        const std::uint64_t length = fields.u64();
        chunks.push_back(structure(address, length));
      }
    prefix.demand(found == count && !messages.empty());
    return messages;
  }

  void read_object(std::uint64_t header, const std::string& name, Contents& parent, int depth) {
    const std::vector<Message> messages = messages_of(header);
    if (std::ranges::find(messages, symbol_table, &Message::type) == messages.end())
      parent.datasets.emplace(name, dataset_of(messages));
    else
      parent.groups.emplace(
          name, std::make_unique<Contents>(group_of(messages, parent.path + "/" + name, depth)));
  }

  Contents group_of(std::span<const Message> messages, std::string path, int depth) {
    Contents group{std::move(path)};
    bool has_children = false;
    for (const Message& message : messages) {
      if (message.type == nil) continue;
      if (message.type == attribute) {
        read_attribute(message.fields, group);
        continue;
      }
      Fields fields = message.fields;
      fields.demand(message.type == symbol_table && depth < max_depth &&
                    !std::exchange(has_children, true));
      const std::uint64_t tree = fields.u64();
      Fields heap = structure(fields.u64(), 32);
      heap.expect("HEAP\0\0\0\0"sv);
      const std::uint64_t size = heap.u64();
      heap.u64();  // where it is free
      read_tree(tree, max_level, structure(heap.u64(), size).text(size), group, depth);
    }
    messages.front().fields.demand(has_children);
    return group;
  }

  void read_attribute(Fields fields, Contents& group) {
    fields.demand(fields.u16() == 1);  // version
    const std::uint64_t name_size = fields.u16(), type_size = fields.u16(),
                        space_size = fields.u16();
    const std::string_view text = fields.text(padded(name_size));
    fields.demand(name_size > 0 && text.find('\0') == name_size - 1);
    const ElementType type = type_of(fields.part(padded(type_size)));
    const Shape shape = shape_of(fields.part(padded(space_size)), 1);
    fields.demand(shape.rank() == 0);
    const std::string name(text.substr(0, name_size - 1));
    const Values values{type.type, type.width, shape, fields.bytes(type.width)};
    fields.demand(group.attributes.emplace(name, values).second);
  }

  /// A node of a B-tree, version 1, and the children below it.
  void read_tree(std::uint64_t address, std::uint64_t most_level, std::string_view names,
                 Contents& group, int depth) {
    Fields node = structure(address, 24 + (2 * internal_k + 1) * 8 + 2 * internal_k * 8);
    node.expect("TREE\0"sv);
    const std::uint64_t level = node.u8(), count = node.u16();
    node.demand(level <= most_level && count <= 2 * internal_k);
    node.text(16);  // its siblings
    for (std::uint64_t i = 0; i < count; ++i) {
      node.u64();  // the name before those of the child
      const std::uint64_t child = node.u64();
      if (level > 0)
        read_tree(child, level - 1, names, group, depth);
      else
        read_symbols(child, names, group, depth);
    }
  }

  void read_symbols(std::uint64_t address, std::string_view names, Contents& group, int depth) {
    Fields table = structure(address, 8 + 2 * leaf_k * 40);
    table.expect("SNOD\1\0"sv);
    const std::uint64_t entries = table.u16();
    table.demand(entries <= 2 * leaf_k);
    for (std::uint64_t i = 0; i < entries; ++i) {
      Fields entry = table.part(40);
      const std::uint64_t begin = entry.u64(), header = entry.u64();
      entry.demand(begin < names.size());
      const std::string_view rest = names.substr(begin, max_path);
      entry.demand(rest.find('\0') != rest.npos);
      const std::string name(rest.substr(0, rest.find('\0')));
      entry.demand(group.path.size() + name.size() < max_path && !group.groups.contains(name) &&
                   !group.datasets.contains(name));
      read_object(header, name, group, depth + 1);
    }
  }

  Values dataset_of(std::span<const Message> messages) {
    std::array<const Message*, layout + 1> found{};
    for (const Message& message : messages) {
      if (message.type == nil) continue;
      message.fields.demand(message.type <= layout && !found[message.type]);
      found[message.type] = &message;
    }
    for (const auto needed : {dataspace, datatype, layout})
      messages.front().fields.demand(found[needed]);
    const ElementType type = type_of(found[datatype]->fields);
    const Shape shape = shape_of(found[dataspace]->fields, file_.size());
    const auto count = static_cast<std::uint64_t>(shape.size());
    Fields where = found[layout]->fields;
    where.demand(where.u16() == (1 << 8 | 3));  // contiguous, version 3
    const std::uint64_t address = where.u64(), size = where.u64();
    where.demand(count <= file_.size() / type.width && size == count * type.width);
    return {type.type, type.width, shape,
            size > 0 ? structure(address, size).bytes(size) : std::span<const std::byte>()};
  }

  std::span<const std::byte> file_;
  std::uint64_t read_ = 0;  ///< bytes of all structures
};

}  // namespace

Contents read(std::span<const std::byte> file) {
  return Reader(file).read_file();
}

std::optional<std::uint64_t> stated_length(std::span<const std::byte> bytes) {
  if (bytes.size() < superblock_size) return std::nullopt;
  Fields superblock(bytes, 0);
  if (superblock.text(signature.size()) != signature) return std::nullopt;
  superblock.text(31);  // versions and sizes, two addresses
  return superblock.u64();
}

}  // namespace qkv::hdf5
