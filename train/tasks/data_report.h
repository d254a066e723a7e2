#pragma once

#include <map>
#include <span>
#include <string>

#include "datasets/corpus.h"
#include "datasets/read_callback.h"
#include "train/config/config.h"

namespace qkv {

/// Counts the sentences of a split that do not fit: cut, left out or refused.
class DataReport {
 public:
  /// Both must outlive it.
  DataReport(const Rows& data, std::span<const Index> rows, Index max_length)
      : data_(data), rows_(rows), max_length_(max_length) {}

  /// Whether a sentence of `length` tokens is longer than the model allows. Throws UserError naming
  /// its place unless such sentences are truncated.
  bool is_cut(Index row, Index length, bool truncates);
  /// Throws UserError naming the place unless the policy is to skip.
  void leave_out_label(Index row, const std::string& label, UnknownLabels policy,
                       std::span<const std::string> known);
  void leave_out(const std::string& reason) { ++left_out_[reason]; }
  /// The label of a word of which the tokenizer leaves nothing.
  void leave_out_word() { ++words_; }
  /// A message for each kind of change, with counts.
  void tell(ReadCallback& callback) const;

 private:
  const Rows& data_;
  std::span<const Index> rows_;
  Index max_length_, cut_ = 0, words_ = 0;
  std::map<std::string, Index> left_out_;
};

}  // namespace qkv
