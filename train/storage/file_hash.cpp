#include "train/storage/file_hash.h"

#include <xxhash.h>

#include <fstream>
#include <memory>
#include <vector>

#include "core/error.h"

namespace qkv {

std::string hash_of_file(const std::filesystem::path& file) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown)) return "";
  std::ifstream stream(file, std::ios::binary);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> block(1 << 20);
  while (stream.read(block.data(), std::ssize(block)), stream.gcount() > 0)
    XXH3_128bits_update(state.get(), block.data(), static_cast<std::size_t>(stream.gcount()));
  require<FileError>(stream.eof() && !stream.bad(), "{}: cannot read", file.string());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace qkv
