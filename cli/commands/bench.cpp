#include "cli/step_benchmark.h"

#include "cli/commands/training.h"
#include "train/loop/equal_ranks.h"

namespace qkv::commands {
namespace {

struct BenchOptions {
  std::string config;
  std::vector<std::string> set;
  double seconds = 3;
};

/// A measurement: its JSON key, and its title and format in the table.
struct Measure {
  const char* key;
  double value;
  std::string title = "";  ///< empty: only for programs
  const char* format = "{:.3f} ms";
};

std::vector<Measure> measures_of(const Benchmark& b) {
  const double ranks_gflops = b.gflops / static_cast<double>(b.ranks);
  return {{"forward_ms", b.data_and_forward_ms, "data and forward"},
          {"backward_ms", b.backward_ms, "backward"},
          {"optimizer_ms", b.optimizer_ms, "clipping and optimizer"},
          {"step_ms", b.step_ms, "whole"},
          {"tokens_per_second", b.tokens_per_second, "tokens a second", "{:.0f}"},
          {"gflops", b.gflops, "GFLOP/s", "{:.1f}"},
          {"sgemm_gflops", b.sgemm_gflops},
          {"share_of_sgemm", ranks_gflops / b.sgemm_gflops,
           fmt::format("fraction of sgemm's {:.1f}", b.sgemm_gflops), "{:.3f}"},
          {"peak_gflops", b.peak_gflops},
          {"share_of_peak", ranks_gflops / b.peak_gflops,
           fmt::format("fraction of the multiply-add peak's {:.1f}", b.peak_gflops), "{:.3f}"},
          {"peak_memory_mib", b.peak_memory_mib, "peak memory", "{:.1f} MiB"},
          {"evaluation_ms", b.evaluation_ms, "evaluation of a batch"}};
}

Document bench(const BenchOptions& options, const Communicator& ranks) {
  Run run = start_run(read_config(options.config, options.set).base);
  require_equal_ranks(run, ranks);
  const Benchmark b = benchmark(run, options.seconds, ranks);
  auto measures = measures_of(b);
  if (b.generated_tokens_per_second)
    measures.push_back({"generated_tokens_per_second", *b.generated_tokens_per_second,
                        "generated tokens a second", "{:.0f}"});
  Document document;
  document.data =
      object({{"parameters", b.parameters}, {"threads", b.threads}, {"ranks", b.ranks}});
  Cells rows{{"a training step", "median"},
             {"parameters", fmt::format("{}", b.parameters)},
             {"threads", fmt::format("{}", b.threads)}};
  for (const auto& [key, value, title, format] : measures) {
    document.data[key] = value;
    if (!title.empty()) rows.push_back({title, fmt::format(fmt::runtime(format), value)});
  }
  document.add_table(std::move(rows));
  if (b.ranks > 1)
    document.add_note("{} ranks of so many threads; memory is that of rank 0", b.ranks);
  return document;
}

}  // namespace

Command bench_command() {
  const auto o = std::make_shared<BenchOptions>();
  return {.name = "bench",
          .summary = "Measure time and memory of a config's training step",
          .options = {config_argument(o->config),
                      set_option(o->set),
                      {"--seconds", &o->seconds, "Seconds of measurement [3]", from_to(0, 3600)},
                      threads_option()},
          .run = [o](const Stream&) {
            return on_all_ranks(
                [&](const Communicator& ranks, const StopSignal&) { return bench(*o, ranks); });
          }};
}

}  // namespace qkv::commands
