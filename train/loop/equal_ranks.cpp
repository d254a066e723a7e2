#include "train/loop/equal_ranks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/dtype.h"
#include "core/platform.h"
#include "train/storage/content_hash.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

/// A hash as text.
using HashText = std::array<char, 32>;

HashText hash_of(std::string_view text) {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(text)));
  HashText hex{};
  std::ranges::copy(hash.text(), hex.begin());
  return hex;
}

/// Without what differs between machines: the names of files, whose contents show in the data and
/// the parameters, and the memory budget.
HashText hash_of_configs(std::span<const Config> configs) {
  std::string text;
  for (Config config : configs) {
    config.task.train = config.task.valid = config.task.test = config.task.data = {};
    config.model.embedding_file = {};
    config.train.memory = {};  // machines may have different amounts
    text += to_toml(config);
  }
  return hash_of(text);
}

HashText hash_of_state(const Checkpoint& checkpoint) {
  ContentHash hash;
  for (const auto* state : {&checkpoint.model, &checkpoint.optimizer})
    for (const auto& entry : *state)
      dispatch(entry.second.dtype(),
               [&]<class T>() { hash.add(std::as_bytes(entry.second.data<T>())); });
  return hash_of(fmt::format("{} {}", checkpoint.step, hash.text()));
}

/// The first rank whose hash is not that of rank 0; 0: there is none.
Index first_other_rank(const HashText& own, const Communicator& ranks) {
  const auto all = all_gather(ranks, own);
  const auto other =
      std::ranges::find_if(all, [&](const HashText& hash) { return hash != all.front(); });
  return other == all.end() ? 0 : other - all.begin();
}

void require_equal(const HashText& own, std::string_view what, std::string_view fix,
                   const Communicator& ranks) {
  const Index other = first_other_rank(own, ranks);
  require<UserError>(other == 0, "rank {} has {} than rank 0; {}", other, what, fix);
}

}  // namespace

void require_equal_configs(std::span<const Config> configs, const Communicator& ranks) {
  if (ranks.size() == 1) return;
  const auto program = read_file(platform::program(), std::numeric_limits<std::int64_t>::max());
  require_equal(hash_of(program), "another qkv", "start the same build on every machine", ranks);
  require_equal(hash_of_configs(configs), "another config",
                "give every rank the same file and the same options", ranks);
}

void require_equal_ranks(const Training& training, const Communicator& ranks) {
  if (ranks.size() == 1) return;
  const Checkpoint now = training.checkpoint({});
  const Config config = parse_config(now.config, "the checkpoint");
  require_equal_configs({&config, 1}, ranks);
  const std::string data = fmt::format("{} {} {}", now.data_hash, training.size(Split::valid),
                                       training.size(Split::test));
  require_equal(hash_of(data), "other data", "copy the same data to every machine", ranks);
  require_equal(hash_of_state(now), "other parameters",
                "resume every rank from the same checkpoint and use processors of one kind", ranks);
}

void require_equal_state(const Checkpoint& checkpoint, const Communicator& ranks) {
  if (ranks.size() == 1) return;
  const Index other = first_other_rank(hash_of_state(checkpoint), ranks);
  require<Error>(other == 0,
                 "step {}: rank {} has other parameters or optimizer state than rank 0, so its "
                 "machine computes other bits; nothing was saved: use machines of one kind and "
                 "`qkv resume`",
                 checkpoint.step, other);
}

}  // namespace qkv
