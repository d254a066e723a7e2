#include "datasets/encoded_text.h"

#include <algorithm>
#include <utility>

#include "core/parallel.h"

namespace qkv {

EncodedText::EncodedText(BlockedText text, std::shared_ptr<const Tokenizer> tokenizer,
                         ReadCallback& callback, Index longest_kept)
    : text_(std::move(text)), tokenizer_(std::move(tokenizer)) {
  begins_.reserve(static_cast<std::size_t>(text_.blocks()));
  const Index blocks = text_.blocks();
  const bool keeps = text_.characters() <= longest_kept;
  struct Part {
    std::vector<std::int32_t> ids;  // all of them, or those of the last block
    Index size = 0, unknown = 0;
  };
  const Chunks chunks{blocks, std::min<Index>(blocks, threads())};
  std::vector<Part> parts(static_cast<std::size_t>(chunks.count));
  begins_.resize(static_cast<std::size_t>(blocks));
  const std::string what = "encoding " + text_.name();
  parallel_for(chunks.count, [&](Index chunk) {
    Part& part = parts[static_cast<std::size_t>(chunk)];
    TextEncoder encoder(*tokenizer_);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      if (chunk == 0 && i % 256 == 0)
        callback.on_reading(what, static_cast<double>(i) / static_cast<double>(chunks.end(0)));
      begins_[static_cast<std::size_t>(i)] = part.size;
      if (!keeps) part.ids.clear();
      const Index before = std::ssize(part.ids);
      encoder.encode(text_.block(i), part.ids);
      part.size += std::ssize(part.ids) - before;
      part.unknown += std::count_if(part.ids.begin() + before, part.ids.end(), [&](auto id) {
        return tokenizer_->vocabulary().is_unknown(id);
      });
    }
  });
  for (Index chunk = 0; chunk < chunks.count; ++chunk) {
    const Part& part = parts[static_cast<std::size_t>(chunk)];
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i)
      begins_[static_cast<std::size_t>(i)] += size_;
    size_ += part.size;
    unknown_ += part.unknown;
    if (keeps) kept_.insert(kept_.end(), part.ids.begin(), part.ids.end());
  }
}

void EncodedText::for_each_part(
    const std::function<void(std::span<const std::int32_t>)>& use) const {
  TextEncoder encoder(*tokenizer_);
  std::vector<std::int32_t> ids;
  for (Index i = 0; i < text_.blocks(); ++i) {
    ids.clear();
    encoder.encode(text_.block(i), ids);
    use(ids);
  }
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
