#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "datasets/tokenizer.h"
#include "datasets/tsv.h"

namespace qkv {

/// Sequences, one after the other in memory.
template <class T>
class Lists {
 public:
  Index size() const noexcept { return std::ssize(ends_); }
  std::span<const T> operator[](Index i) const {
    const Index begin = begin_of(i);
    return std::span(values_).subspan(
        static_cast<std::size_t>(begin),
        static_cast<std::size_t>(ends_[static_cast<std::size_t>(i)] - begin));
  }
  void add(std::span<const T> values) {
    values_.insert(values_.end(), values.begin(), values.end());
    ends_.push_back(std::ssize(values_));
  }
  /// The values of all sequences.
  std::span<const T> flat() const noexcept { return values_; }
  /// The sequence that value `i` of `flat` is in, and its position there.
  std::pair<Index, Index> locate(Index i) const {
    const Index list = std::ranges::upper_bound(ends_, i) - ends_.begin();
    return {list, i - begin_of(list)};
  }

 private:
  Index begin_of(Index i) const { return i ? ends_[static_cast<std::size_t>(i) - 1] : 0; }

  std::vector<T> values_;
  std::vector<Index> ends_;
};
using TextLists = Lists<char>;

/// Sequences of ids of 0 and more, most of them small: an id below 128 takes a byte, one below
/// 16384 two (LEB128).
class IdLists {
 public:
  Index size() const noexcept { return bytes_.size(); }
  std::vector<std::int32_t> operator[](Index i) const;
  /// The number of ids of sequence `i`.
  Index length(Index i) const;
  void add(std::span<const std::int32_t> ids);

 private:
  Lists<std::uint8_t> bytes_;
};

/// Distinct texts, numbered from 0 in the order in which they came.
class Numbering {
 public:
  std::int32_t number(std::string_view text);
  const std::string& text(std::int32_t number) const {
    return *texts_[static_cast<std::size_t>(number)];
  }
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(texts_.size()); }

 private:
  std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>> numbers_;
  std::vector<const std::string*> texts_;  ///< keys of `numbers_`, which stay where they are
};

/// Texts that were read before there is a vocabulary, as indices of distinct pieces.
class Corpus {
 public:
  /// Adds a text and returns its number.
  Index add(std::span<const std::string> pieces);
  Index size() const { return texts_.size(); }
  std::vector<std::int32_t> operator[](Index text) const { return texts_[text]; }
  const Numbering& pieces() const noexcept { return pieces_; }
  std::vector<std::string> pieces_of(Index text) const;
  /// How often each piece occurs in some texts.
  Vocabulary::Counts counts(std::span<const Index> texts) const;

 private:
  Numbering pieces_;
  IdLists texts_;
};

/// Encodes the texts of a corpus, each distinct piece once. Both must outlive it.
class CorpusEncoder {
 public:
  CorpusEncoder(const Corpus& corpus, const Tokenizer& tokenizer);

  std::vector<std::int32_t> ids(Index text) const;
  /// The position among a text's ids at which its piece `piece` begins.
  Index position(Index text, Index piece) const;

 private:
  const Corpus& corpus_;
  Lists<std::int32_t> ids_;  ///< of each distinct piece
};

/// Rows of data files that were read before there is a vocabulary.
struct Rows {
  /// A piece of the row's text and what is known about it.
  struct Mark {
    std::int32_t label, piece;  ///< `piece`: its position; -1: none
  };

  Corpus corpus;  ///< of row i text i, or as many texts as the task has in a row
  Numbering labels;
  Lists<Mark> marks;  ///< of each row
  TextLists places;   ///< of each row, such as "train.tsv:12"

  Index size() const noexcept { return places.size(); }
  std::string place(Index row) const { return {places[row].begin(), places[row].end()}; }
  /// The file of a row.
  std::string file(Index row) const { return place(row).substr(0, place(row).rfind(':')); }
  void add(std::string_view place, std::span<const std::string> pieces,
           std::span<const Mark> row_marks = {});
};

/// Adds the sentences of a file, one a line. Of a row with columns the last is the sentence, so
/// that labelled files of any task can be read. Throws as `for_each_row`.
void add_sentences(const std::filesystem::path& file, const Cutting& cutting, Rows& rows,
                   ReadCallback& callback);

}  // namespace qkv
