#include "train/storage/hdf5_structure.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "train/storage/hdf5.h"

namespace qkv::hdf5 {
namespace {

constexpr std::uint64_t undefined = ~std::uint64_t{0};
constexpr std::uint64_t leaf_k = 4, internal_k = 16;  // half the children of a node
constexpr int max_depth = 64;                         // of groups
constexpr std::uint64_t max_level = 4;                // of a tree: 8 million children

enum MessageType : std::uint16_t {
  nil = 0x0,
  dataspace = 0x1,
  datatype = 0x3,
  fill_value = 0x5,
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
  Fields part(std::uint64_t size) {
    demand(size <= left());
    const Fields result(rest_.first(size), address_);
    rest_ = rest_.subspan(size);
    address_ += size;
    return result;
  }
  std::string_view text(std::uint64_t size) {
    const Fields bytes = part(size);
    return {reinterpret_cast<const char*>(bytes.rest_.data()), bytes.rest_.size()};
  }
  /// Fields that can have one value only.
  void expect(std::string_view bytes) { demand(text(bytes.size()) == bytes); }
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
    const std::string_view bytes = text(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
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

/// Where a group has the names and the addresses of its children.
struct GroupAddresses {
  std::uint64_t tree, heap;
  friend bool operator==(const GroupAddresses&, const GroupAddresses&) = default;
};

/// A node of a tree between its siblings.
struct Neighbours {
  std::uint64_t left, address, right;
};

class Checker {
 public:
  explicit Checker(std::span<const std::byte> file) : file_(file) {}

  void check_file();

 private:
  /// The structure at an address, which no other may overlap.
  Fields structure(std::uint64_t address, std::uint64_t size) {
    require<Hdf5Error>(address <= file_.size() && size <= file_.size() - address,
                       "is no checkpoint of qkv: it has a structure of {} bytes at byte {} of {}",
                       size, address, file_.size());
    if (size > 0) extents_.push_back({address, address + size});
    return {file_.subspan(address, size), address};
  }
  void check_entry(Fields entry, std::string_view names, int depth);
  void check_object(std::uint64_t header, const Fields& entry, const GroupAddresses* cached,
                    int depth);
  void check_group(const GroupAddresses& group, int depth);
  std::string_view check_heap(std::uint64_t address);
  void check_tree(const Neighbours& at, std::uint64_t most_level, std::string_view names,
                  int depth);
  void check_symbols(std::uint64_t address, std::string_view names, int depth);
  void check_dataset(std::vector<Message> messages);
  std::vector<Message> messages_of(std::uint64_t header);
  void check_overlaps();

  struct Extent {
    std::uint64_t begin, end;
  };
  std::span<const std::byte> file_;
  std::vector<Extent> extents_;
};

/// The bytes of an element.
std::uint64_t size_of_type(Fields fields) {
  using namespace std::string_view_literals;
  constexpr auto text = "\x13\x11\0\0"sv;  // zero-padded UTF-8
  constexpr std::array number_types = {
      "\x11\x20\x1f\0\4\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0"sv,   // float32
      "\x11\x20\x3f\0\x8\0\0\0\0\0\x40\0\x34\x0b\0\x34\xff\3\0\0"sv,  // float64
      "\x10\x8\0\0\x8\0\0\0\0\0\x40\0"sv};                            // int64
  Fields copy = fields;
  const std::string_view all = copy.text(copy.left());
  for (const std::string_view known : number_types)
    if (all.starts_with(known)) {
      fields.part(known.size()).demand(true);
      fields.expect_zeros(all.size() - known.size());
      return static_cast<unsigned char>(known[4]);
    }
  fields.expect(text);
  const std::uint64_t size = fields.u32();
  fields.demand(size > 0);
  fields.expect_zeros(fields.left());
  return size;
}

/// The number of elements; at most `most`.
std::uint64_t elements_of_space(Fields fields, std::uint64_t most) {
  fields.demand(fields.u8() == 1);
  const std::uint64_t rank = fields.u8(), has_maximum = fields.u8();
  fields.demand(rank <= Shape::max_rank && has_maximum <= 1);
  fields.expect_zeros(5);
  std::array<std::uint64_t, Shape::max_rank> sizes{};
  std::uint64_t count = 1;
  for (std::uint64_t i = 0; i < rank; ++i) {
    sizes[i] = fields.u64();
    fields.demand(sizes[i] <= most);
  }
  for (std::uint64_t i = 0; i < rank && has_maximum; ++i) fields.demand(fields.u64() == sizes[i]);
  fields.expect_zeros(fields.left());
  if (std::ranges::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank), 0U) > 0)
    return 0;
  for (std::uint64_t i = 0; i < rank; ++i) {
    fields.demand(count <= most / sizes[i]);
    count *= sizes[i];
  }
  return count;
}

void check_attribute(Fields fields) {
  fields.demand(fields.u16() == 1);  // version
  const std::uint64_t name = fields.u16(), type = fields.u16(), space = fields.u16();
  fields.demand(name > 0);
  const std::string_view text = fields.text(padded(name));
  fields.demand(text.find('\0') == name - 1);
  const std::uint64_t size = size_of_type(fields.part(padded(type)));
  fields.demand(elements_of_space(fields.part(padded(space)), 1) == 1);
  fields.demand(size <= fields.left());
  fields.text(size);
  fields.expect_zeros(fields.left());
}

void Checker::check_file() {
  using namespace std::string_view_literals;
  Fields superblock = structure(0, 96);
  superblock.expect("\x89HDF\r\n\x1a\n\0\0\0\0\0\x8\x8\0"sv);
  superblock.demand(superblock.u16() == leaf_k && superblock.u16() == internal_k);
  superblock.expect_zeros(4 + 8);  // flags, base address
  superblock.demand(superblock.u64() == undefined);
  superblock.demand(superblock.u64() == file_.size());
  superblock.demand(superblock.u64() == undefined);
  check_entry(superblock.part(40), std::string_view("\0", 1), 0);
  check_overlaps();
}

/// An entry of a symbol table, whose name is in `names`; of a group it repeats the addresses.
void Checker::check_entry(Fields entry, std::string_view names, int depth) {
  const std::uint64_t name = entry.u64(), header = entry.u64(), cache = entry.u32();
  entry.demand(name < names.size() && names.find('\0', name) != names.npos && cache <= 1);
  entry.expect_zeros(4);
  const GroupAddresses cached{entry.u64(), entry.u64()};
  check_object(header, entry, cache == 1 ? &cached : nullptr, depth);
}

void Checker::check_object(std::uint64_t header, const Fields& entry, const GroupAddresses* cached,
                           int depth) {
  entry.demand(depth < max_depth);
  std::vector<Message> messages = messages_of(header);
  const auto group = std::ranges::find(messages, symbol_table, &Message::type);
  if (group == messages.end()) {
    entry.demand(!cached);
    return check_dataset(std::move(messages));
  }
  for (Message& message : messages) {
    message.fields.demand(message.type == nil || message.type == attribute || &message == &*group);
    if (message.type == attribute) check_attribute(message.fields);
  }
  const GroupAddresses addresses{group->fields.u64(), group->fields.u64()};
  group->fields.expect_zeros(group->fields.left());
  entry.demand(!cached || *cached == addresses);
  check_group(addresses, depth);
}

/// Those of an object header, version 1, and of its continuations.
std::vector<Message> Checker::messages_of(std::uint64_t header) {
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
  prefix.demand(found == count);
  return messages;
}

void Checker::check_group(const GroupAddresses& group, int depth) {
  const std::string_view names = check_heap(group.heap);
  check_tree({undefined, group.tree, undefined}, max_level, names, depth);
}

/// The names in a local heap.
std::string_view Checker::check_heap(std::uint64_t address) {
  using namespace std::string_view_literals;
  Fields heap = structure(address, 32);
  heap.expect("HEAP\0\0\0\0"sv);
  const std::uint64_t size = heap.u64();
  std::uint64_t free = heap.u64();
  Fields names = structure(heap.u64(), size);
  const std::string_view text = names.text(size);
  for (std::uint64_t last = 0; free != 1; last = free) {  // 1 ends the list
    heap.demand(free % 8 == 0 && free >= last && free <= size && size - free >= 16);
    Fields block(std::as_bytes(std::span(text.substr(free))), address);
    const std::uint64_t next = block.u64(), length = block.u64();
    heap.demand(length >= 16 && length <= size - free && (next == 1 || next > free));
    free = next;
    if (free == 1) break;
  }
  return text;
}

/// A node of a B-tree, version 1, and the children below it.
void Checker::check_tree(const Neighbours& at, std::uint64_t most_level, std::string_view names,
                         int depth) {
  using namespace std::string_view_literals;
  Fields node = structure(at.address, 24 + (2 * internal_k + 1) * 8 + 2 * internal_k * 8);
  node.expect("TREE\0"sv);
  const std::uint64_t level = node.u8(), count = node.u16();
  node.demand(level <= most_level && count <= 2 * internal_k);
  node.demand(node.u64() == at.left);
  node.demand(node.u64() == at.right);
  std::vector<std::uint64_t> children = {undefined};
  for (std::uint64_t i = 0; i < count; ++i) {
    node.demand(node.u64() < names.size());
    children.push_back(node.u64());
  }
  node.demand(count == 0 || node.u64() < names.size());
  children.push_back(undefined);
  for (std::uint64_t i = 1; i <= count; ++i)
    if (level > 0)
      check_tree({children[i - 1], children[i], children[i + 1]}, level - 1, names, depth);
    else
      check_symbols(children[i], names, depth);
}

void Checker::check_symbols(std::uint64_t address, std::string_view names, int depth) {
  using namespace std::string_view_literals;
  Fields table = structure(address, 8 + 2 * leaf_k * 40);
  table.expect("SNOD\1\0"sv);
  const std::uint64_t entries = table.u16();
  table.demand(entries <= 2 * leaf_k);
  for (std::uint64_t i = 0; i < entries; ++i) check_entry(table.part(40), names, depth + 1);
}

void Checker::check_dataset(std::vector<Message> messages) {
  std::array<const Message*, layout + 1> found{};
  for (const Message& message : messages) {
    if (message.type == nil) continue;
    message.fields.demand(message.type <= layout && message.type != attribute &&
                          !found[message.type]);
    found[message.type] = &message;
  }
  for (const auto needed : {dataspace, datatype, fill_value, layout})
    messages.front().fields.demand(found[needed]);
  const std::uint64_t size = size_of_type(found[datatype]->fields);
  const std::uint64_t count = elements_of_space(found[dataspace]->fields, file_.size());
  Fields fill = found[fill_value]->fields;
  fill.demand(fill.u8() == 2 && fill.u8() <= 3 && fill.u8() <= 2 && fill.u8() <= 1);
  fill.expect_zeros(fill.left());  // the default value
  Fields where = found[layout]->fields;
  where.demand(where.u16() == (1 << 8 | 3));  // contiguous, version 3
  const std::uint64_t address = where.u64(), bytes = where.u64();
  where.expect_zeros(where.left());
  where.demand(count <= file_.size() / size && bytes == count * size);
  if (bytes == 0)
    where.demand(address == undefined);
  else
    structure(address, bytes);
}

void Checker::check_overlaps() {
  std::ranges::sort(extents_, {}, &Extent::begin);
  for (std::size_t i = 1; i < extents_.size(); ++i)
    require<Hdf5Error>(extents_[i - 1].end <= extents_[i].begin,
                       "is no checkpoint of qkv: structures overlap at byte {}", extents_[i].begin);
}

}  // namespace

void check_structure(std::span<const std::byte> file) {
  Checker(file).check_file();
}

}  // namespace qkv::hdf5
