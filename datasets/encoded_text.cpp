#include "datasets/encoded_text.h"

#include <algorithm>
#include <utility>

#include "core/parallel.h"
#include "datasets/text.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

constexpr std::size_t longest_block = 1024;
/// Ids of a list: a training window decodes few that it does not read.
constexpr Index ids_at_once = 64;
constexpr Index blocks_at_once = 4096;

bool continues_character(char c) {
  return (c & 0xC0) == 0x80;
}

/// The length of the first block of a text that is longer than a block.
std::size_t block_length(std::string_view text) {
  const std::string_view head = text.substr(0, longest_block);
  if (const auto line = head.rfind('\n'); line != head.npos) return line + 1;
  if (const auto space = head.rfind(' '); space != head.npos && space > 0) return space;
  std::size_t length = longest_block;
  while (length > 1 && continues_character(text[length])) --length;
  return length;
}

std::string lines_of(const std::filesystem::path& file, ReadCallback& callback) {
  std::string text;
  for_each_line(file, callback, [&](std::size_t, std::string& line) { text += line + '\n'; });
  return text;
}

/// Calls `use(worker, i)` for i from `begin` up to `end`, in order for each of `workers` threads.
template <class F>
void for_each_block(Index begin, Index end, Index workers, F use) {
  const Chunks chunks{end - begin, std::min(end - begin, workers)};
  parallel_for(chunks.count, [&](Index worker) {
    for (Index i = chunks.begin(worker); i < chunks.end(worker); ++i) use(worker, begin + i);
  });
}

}  // namespace

BlockedText::BlockedText(std::string text, std::string name)
    : text_(std::move(text)), name_(std::move(name)) {
  for (std::size_t end = 0; end < text_.size();) {
    const std::string_view rest = std::string_view(text_).substr(end);
    end += rest.size() > longest_block ? block_length(rest) : rest.size();
    ends_.push_back(end);
  }
}

BlockedText::BlockedText(const std::filesystem::path& file, ReadCallback& callback)
    : BlockedText(lines_of(file, callback), file.string()) {}

Index BlockedText::characters() const {
  return std::ranges::count_if(text_, [](char c) { return !continues_character(c); });
}

std::string_view BlockedText::block(Index i) const {
  const std::size_t begin = i > 0 ? ends_[static_cast<std::size_t>(i - 1)] : 0;
  return std::string_view(text_).substr(begin, ends_[static_cast<std::size_t>(i)] - begin);
}

BlockedText BlockedText::cut_off(Index count) {
  std::size_t begin = text_.size();
  for (; count > 0; --begin) count -= !continues_character(text_[begin - 1]);
  BlockedText end(text_.substr(begin), name_);
  *this = BlockedText(text_.substr(0, begin), name_);
  return end;
}

BlockedText& BlockedText::operator+=(const BlockedText& other) {
  return *this = BlockedText(text_ + other.text_, name_);
}

Vocabulary::Counts BlockedText::counts(const Cutting& cutting, ReadCallback& callback) const {
  std::vector<PieceCounter> counters(static_cast<std::size_t>(threads()), PieceCounter(cutting));
  for (Index begin = 0; begin < blocks(); begin += blocks_at_once) {
    callback.on_item("counting " + name_, static_cast<std::size_t>(begin), ends_.size());
    for_each_block(
        begin, std::min(begin + blocks_at_once, blocks()), std::ssize(counters),
        [&](Index worker, Index i) { counters[static_cast<std::size_t>(worker)].add(block(i)); });
  }
  for (std::size_t i = 1; i < counters.size(); ++i) counters[0] += counters[i];
  return counters[0].counts();
}

EncodedText::EncodedText(const BlockedText& text, const Tokenizer& tokenizer,
                         ReadCallback& callback) {
  std::vector<TextEncoder> encoders(static_cast<std::size_t>(threads()), TextEncoder(tokenizer));
  std::vector<std::int32_t> ids;  // of a list that is not full yet
  for (Index begin = 0; begin < text.blocks(); begin += blocks_at_once) {
    callback.on_item("encoding " + text.name(), static_cast<std::size_t>(begin),
                     static_cast<std::size_t>(text.blocks()));
    const Index end = std::min(begin + blocks_at_once, text.blocks());
    std::vector<std::vector<std::int32_t>> of_block(static_cast<std::size_t>(end - begin));
    for_each_block(begin, end, std::ssize(encoders), [&](Index worker, Index i) {
      encoders[static_cast<std::size_t>(worker)].encode(
          text.block(i), of_block[static_cast<std::size_t>(i - begin)]);
    });
    for (const auto& block : of_block)
      for (const std::int32_t id : block) {
        ids.push_back(id);
        unknown_ += tokenizer.vocabulary().is_unknown(id);
        if (++size_ % ids_at_once > 0) continue;
        lists_.add(ids);
        ids.clear();
      }
  }
  if (!ids.empty()) lists_.add(ids);
}

std::vector<std::int32_t> EncodedText::ids(Index begin, Index end) const {
  std::vector<std::int32_t> ids;
  for (Index list = begin / ids_at_once; list * ids_at_once < end; ++list) {
    const std::vector<std::int32_t> part = lists_[list];
    const Index first = std::max<Index>(begin - list * ids_at_once, 0),
                last = std::min<Index>(end - list * ids_at_once, std::ssize(part));
    ids.insert(ids.end(), part.begin() + first, part.begin() + last);
  }
  return ids;
}

}  // namespace qkv
