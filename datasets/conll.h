#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "datasets/read_callback.h"

namespace qkv {

/// A sentence with a label for each word.
struct LabelledWords {
  std::string place;  ///< of its first line: "train.conll:3"
  std::vector<std::string> words, labels;
};

/// Calls `use` for each sentence of a file in CoNLL columns: a word a line, its label in the last
/// of the columns, which tabs separate, in lines without tabs spaces, and blank lines between
/// sentences. In CoNLL-U (ten columns, the first a number) the word is FORM and the label UPOS.
/// Lines that begin with "-DOCSTART-" and comments, which begin with "#", are skipped: before a
/// sentence those that begin with "# " and have a "=" or that have not the columns of a word, and
/// "#begin document" and "#end document". Throws UserError as `for_each_line` does, naming the line
/// when it has no label, and when there is no sentence.
void for_each_conll_sentence(const std::filesystem::path& path, ReadCallback& callback,
                             const std::function<void(const LabelledWords&)>& use);

/// Labelled words from `begin` up to `end` that make one unit of a type.
struct Span {
  Index begin, end;
  std::string type;

  friend bool operator==(const Span&, const Span&) = default;
};
/// Whether a label is the part of a span that its first letter says, behind which "-" and a type
/// follow: B begins a span, I and M are in the middle of one, E and L end one, S and U are one word
/// (BIO, IOBES, BMES, BILOU).
bool is_span_label(std::string_view label);
/// The spans of such labels, as the evaluation of CoNLL-2000 finds them: one that nothing began
/// begins where its type does.
std::vector<Span> spans_of(const std::vector<std::string>& labels);

}  // namespace qkv
