// Rates of the readers of text and tables, a line for each, "name;MB/s". bench/compare_readers runs
// it.
//
//     qkv_readers_bench TEXT CSV THREADS VOCABULARY
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "core/parallel.h"
#include "datasets/csv.h"
#include "datasets/encoded_text.h"
#include "datasets/tokenizer.h"

namespace {

using namespace qkv;

template <class F>
void measure(const char* name, const std::filesystem::path& file, F read) {
  const auto start = std::chrono::steady_clock::now();
  read();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{};{:.1f}\n", name,
             1e-6 * static_cast<double>(std::filesystem::file_size(file)) / seconds.count());
}

}  // namespace

int main(int, char** arguments) {
  const std::filesystem::path text = arguments[1], csv = arguments[2];
  set_threads(std::stoi(arguments[3]));
  ReadCallback none;
  measure("CSV", csv, [&] { for_each_record(csv, none, [](CsvRecord&) {}); });
  const BlockedText blocks(text, none);
  const Cutting words{.lower_case = false};
  measure("words", text, [&] {
    const auto tokenizer = Tokenizer::learn(words, blocks.counts(words, none), {});
    EncodedText(blocks, tokenizer, none);
  });
  const Cutting pairs{.kind = TokenizerKind::bpe, .lower_case = false};
  const LearnOptions options{.merges = std::stol(arguments[4])};
  measure("BPE, learned", text,
          [&] { Tokenizer::learn(pairs, blocks.counts(pairs, none), options); });
  const auto tokenizer = Tokenizer::learn(pairs, blocks.counts(pairs, none), options);
  measure("BPE, encoded", text, [&] { EncodedText(blocks, tokenizer, none); });
}
