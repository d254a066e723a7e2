#include "datasets/corpus.h"

namespace qkv {
namespace {

/// Bit of a byte that another byte of its id follows.
constexpr std::uint8_t more = 0x80;

}  // namespace

std::vector<std::int32_t> IdLists::operator[](Index i) const {
  std::vector<std::int32_t> ids;
  ids.reserve(bytes_[i].size());
  std::uint32_t id = 0;
  int shift = 0;
  for (const std::uint8_t byte : bytes_[i]) {
    id |= static_cast<std::uint32_t>(byte & ~more) << shift;
    shift += 7;
    if (byte & more) continue;
    ids.push_back(static_cast<std::int32_t>(id));
    id = 0;
    shift = 0;
  }
  return ids;
}

Index IdLists::length(Index i) const {
  return std::ranges::count_if(bytes_[i], [](std::uint8_t byte) { return !(byte & more); });
}

void IdLists::add(std::span<const std::int32_t> ids) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(2 * ids.size());
  for (const std::int32_t id : ids) {
    auto rest = static_cast<std::uint32_t>(id);
    for (; rest >= more; rest >>= 7) bytes.push_back(static_cast<std::uint8_t>(rest | more));
    bytes.push_back(static_cast<std::uint8_t>(rest));
  }
  bytes_.add(bytes);
}

std::int32_t Numbering::number(std::string_view text) {
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  const auto added = numbers_.emplace(text, size()).first;
  texts_.push_back(&added->first);
  return added->second;
}

Index Corpus::add(std::span<const std::string> pieces) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(pieces.size());
  for (const std::string& piece : pieces) numbers.push_back(pieces_.number(piece));
  texts_.add(numbers);
  return texts_.size() - 1;
}

std::vector<std::string> Corpus::pieces_of(Index text) const {
  std::vector<std::string> pieces;
  for (const std::int32_t number : texts_[text]) pieces.push_back(pieces_.text(number));
  return pieces;
}

Vocabulary::Counts Corpus::counts(std::span<const Index> texts) const {
  std::vector<Index> occurrences(static_cast<std::size_t>(pieces_.size()));
  for (const Index text : texts)
    for (const std::int32_t number : texts_[text]) ++occurrences[static_cast<std::size_t>(number)];
  Vocabulary::Counts counts;
  for (std::int32_t number = 0; number < pieces_.size(); ++number)
    if (const Index count = occurrences[static_cast<std::size_t>(number)]; count > 0)
      counts[pieces_.text(number)] = count;
  return counts;
}

CorpusEncoder::CorpusEncoder(const Corpus& corpus, const Tokenizer& tokenizer) : corpus_(corpus) {
  std::vector<std::int32_t> ids;
  for (std::int32_t number = 0; number < corpus.pieces().size(); ++number) {
    ids.clear();
    tokenizer.encode_piece(corpus.pieces().text(number), ids);
    ids_.add(ids);
  }
}

std::vector<std::int32_t> CorpusEncoder::ids(Index text) const {
  std::vector<std::int32_t> ids;
  for (const std::int32_t number : corpus_[text])
    ids.insert(ids.end(), ids_[number].begin(), ids_[number].end());
  return ids;
}

Index CorpusEncoder::position(Index text, Index piece) const {
  Index position = 0;
  const auto numbers = corpus_[text];
  for (const std::int32_t number : std::span(numbers).first(static_cast<std::size_t>(piece)))
    position += std::ssize(ids_[number]);
  return position;
}

void Rows::add(std::string_view place, std::span<const std::string> pieces,
               std::span<const Mark> row_marks) {
  corpus.add(pieces);
  marks.add(row_marks);
  places.add(place);
}

void add_sentences(const std::filesystem::path& file, const Cutting& cutting, Rows& rows,
                   ReadCallback& callback) {
  for_each_row(file, callback, [&](const TsvRow& row) {
    rows.add(row.place, cut_sentence(row.fields.back(), cutting).pieces);
  });
}

}  // namespace qkv
