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

Document bench_on_rank(const BenchOptions& options, const Communicator& ranks) {
  Run run = start_run(read_config(options.config, options.set).base);
  require_equal_ranks(run, ranks);
  const Benchmark b = benchmark(run, options.seconds, ranks);
  const double ranks_gflops = b.gflops / static_cast<double>(b.ranks);
  Document document;
  document.data = {{"step_ms", b.step_ms},
                   {"forward_ms", b.data_and_forward_ms},
                   {"backward_ms", b.backward_ms},
                   {"optimizer_ms", b.optimizer_ms},
                   {"evaluation_ms", b.evaluation_ms},
                   {"tokens_per_second", b.tokens_per_second},
                   {"gflops", b.gflops},
                   {"sgemm_gflops", b.sgemm_gflops},
                   {"share_of_sgemm", ranks_gflops / b.sgemm_gflops},
                   {"peak_gflops", b.peak_gflops},
                   {"share_of_peak", ranks_gflops / b.peak_gflops},
                   {"peak_memory_mib", b.peak_memory_mib},
                   {"parameters", b.parameters},
                   {"threads", b.threads},
                   {"ranks", b.ranks}};
  if (b.generated_tokens_per_second)
    document.data["generated_tokens_per_second"] = *b.generated_tokens_per_second;
  const auto ms = [](double value) { return fmt::format("{:.3f} ms", value); };
  Rows rows{{"a training step", "median"},
            {"data and forward", ms(b.data_and_forward_ms)},
            {"backward", ms(b.backward_ms)},
            {"clipping and optimizer", ms(b.optimizer_ms)},
            {"whole", ms(b.step_ms)},
            {"tokens a second", fmt::format("{:.0f}", b.tokens_per_second)},
            {"GFLOP/s", fmt::format("{:.1f}", b.gflops)},
            {"fraction of sgemm's " + fmt::format("{:.1f}", b.sgemm_gflops),
             fmt::format("{:.3f}", ranks_gflops / b.sgemm_gflops)},
            {"fraction of the multiply-add peak's " + fmt::format("{:.1f}", b.peak_gflops),
             fmt::format("{:.3f}", ranks_gflops / b.peak_gflops)},
            {"peak memory", fmt::format("{:.1f} MiB", b.peak_memory_mib)},
            {"parameters", fmt::format("{}", b.parameters)},
            {"threads", fmt::format("{}", b.threads)},
            {"evaluation of a batch", ms(b.evaluation_ms)}};
  if (b.generated_tokens_per_second)
    rows.push_back(
        {"generated tokens a second", fmt::format("{:.0f}", *b.generated_tokens_per_second)});
  document.add_table(std::move(rows));
  if (b.ranks > 1)
    document.add_note("{} ranks of so many threads; memory is that of rank 0", b.ranks);
  return document;
}

Document bench(const BenchOptions& options) {
  const auto ranks = connect();
  return on_all_ranks(*ranks, [&] { return bench_on_rank(options, *ranks); });
}

}  // namespace

Command bench_command() {
  const auto o = std::make_shared<BenchOptions>();
  return {.name = "bench",
          .summary = "Measure time and memory of a config's training step",
          .options = {config_argument(o->config),
                      set_option(o->set),
                      {"--seconds", &o->seconds, "How long to measure [3]", {0, 3600}},
                      threads_option()},
          .run = [o](const Stream&) { return bench(*o); }};
}

}  // namespace qkv::commands
