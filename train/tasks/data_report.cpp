#include "train/tasks/data_report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace qkv {

bool DataReport::is_cut(Index row, Index length, bool truncates) {
  if (length <= max_length_) return false;
  require<UserError>(truncates,
                     "{}: the sentence has {} words, more than model.max_length = {}; "
                     "task.truncate=true cuts it",
                     data_.place(row), length, max_length_);
  ++cut_;
  return true;
}

void DataReport::leave_out_label(Index row, const std::string& label, UnknownLabels policy,
                                 std::span<const std::string> known) {
  constexpr std::size_t most = 20;
  if (policy == UnknownLabels::error)
    throw UserError(fmt::format("{}: unknown label \"{}\"; the training data has: {}{}",
                                data_.place(row), label,
                                fmt::join(known.first(std::min(known.size(), most)), ", "),
                                known.size() > most ? ", ..." : ""));
  leave_out(fmt::format("unknown label \"{}\"", label));
}

void DataReport::tell(ReadCallback& callback) const {
  if (cut_ > 0)
    callback.on_message(fmt::format("{}: {} of {} sentences cut to model.max_length = {} tokens",
                                    data_.file(rows_[0]), cut_, rows_.size(), max_length_));
  if (words_ > 0)
    callback.on_message(fmt::format("{}: {} labels left out, of words without a token",
                                    data_.file(rows_[0]), words_));
  for (const auto& [reason, count] : left_out_)
    callback.on_message(fmt::format("{}: {} of {} examples left out: {}", data_.file(rows_[0]),
                                    count, rows_.size(), reason));
}

}  // namespace qkv
