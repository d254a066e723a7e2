#include "datasets/encoded_text.h"

#include <algorithm>
#include <utility>

namespace qkv {

EncodedText::EncodedText(BlockedText text, std::shared_ptr<const Tokenizer> tokenizer,
                         ReadCallback& callback, Index longest_kept)
    : text_(std::move(text)), tokenizer_(std::move(tokenizer)) {
  begins_.reserve(static_cast<std::size_t>(blocks()));
  std::vector<std::int32_t> ids;
  const std::string what = "encoding " + text_.name();
  for (Index i = 0; i < blocks(); ++i) {
    if (i % 256 == 0)
      callback.on_reading(what, static_cast<double>(i) / static_cast<double>(blocks()));
    begins_.push_back(size_);
    ids.clear();
    tokenizer_->encode(text_.block(i), ids);
    size_ += std::ssize(ids);
    if (size_ <= longest_kept) kept_.insert(kept_.end(), ids.begin(), ids.end());
  }
  if (size_ > longest_kept) kept_ = {};
}

std::vector<std::int32_t> EncodedText::block(Index i) const {
  std::vector<std::int32_t> ids;
  tokenizer_->encode(text_.block(i), ids);
  return ids;
}

std::vector<std::int32_t> EncodedText::ids(Index begin, Index end) const {
  if (!kept_.empty()) return {kept_.begin() + begin, kept_.begin() + end};
  const auto first = std::ranges::upper_bound(begins_, begin) - 1;
  std::vector<std::int32_t> ids;
  for (auto at = first; at != begins_.end() && *at < end; ++at)
    tokenizer_->encode(text_.block(at - begins_.begin()), ids);
  ids.erase(ids.begin(), ids.begin() + (begin - *first));
  ids.resize(static_cast<std::size_t>(end - begin));
  return ids;
}

}  // namespace qkv
