#include "tests/fuzz/readers/samples.h"

#include "tests/fuzz/readers/input.h"
#include "train/run/run.h"
#include "train/storage/durable_file.h"

namespace qkv::fuzz {
namespace {

/// A model before its first step.
Checkpoint model() {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  const auto data = file_of(bytes("money\tthe bank pays\nriver\tthe bank of the river\n"), "data");
  const std::string config =
      "name = \"bank\"\n[task]\nkind = \"classify\"\ntrain = \"" + data.string() +
      "\"\n[model]\nkind = \"recurrent\"\nwidth = 4\nlayers = 1\nmax_length = 8\n";
  Checkpoint checkpoint = start_run(parse_config(config, "sample")).checkpoint({});
  checkpoint.metrics = "{\"step\":0,\"split\":\"valid\",\"loss\":1}\n";
  return checkpoint;
}

/// No model, but dtypes and texts of all kinds.
Checkpoint tensors(bool long_token) {
  Checkpoint checkpoint;
  checkpoint.step = 500;
  checkpoint.config = to_toml(parse_config("name = \"bank\"\n[task]\ntrain = \"x\"\n", "sample"));
  checkpoint.model["encoder.w_q.weight"] = Tensor::from({1.0f, -2.5f, 3.0f, 0.1f}, {2, 2});
  checkpoint.model["head.bias"] = Tensor::from({1.0, 1e-300}, {2});
  checkpoint.optimizer["first_moment.head.bias"] = Tensor::scalar(0.25, DType::float64);
  checkpoint.vocabulary["tokens"] = {"<pad>", "<unk>", "bank"};
  if (long_token)
    for (int i = 0; i < 300; ++i)
      checkpoint.vocabulary["tokens"].push_back(std::string(i ? 1 : 4000, 'x'));
  checkpoint.progress = {{"interval_loss", 0},    {"interval_steps", 0}, {"best_score", 0.5},
                         {"best_loss", 1},        {"best_step", 400},    {"updates", 500},
                         {"permuted_examples", 1}};
  checkpoint.metrics = "{\"step\":400,\"split\":\"valid\",\"loss\":1}\n";
  checkpoint.data_hash = "0123456789abcdef";
  checkpoint.init = "loaded: 2 parameters";
  return checkpoint;
}

}  // namespace

const std::vector<std::vector<std::byte>>& checkpoint_files() {
  static const auto files = [] {
    std::vector<std::vector<std::byte>> written;
    for (const Checkpoint& checkpoint : {model(), tensors(false), tensors(true)}) {
      const auto file = file_of({}, "sample");
      write_checkpoint(file, checkpoint);
      const std::string bytes = read_file(file, 1 << 24);
      const auto content = std::as_bytes(std::span(bytes));
      written.emplace_back(content.begin(), content.end());
    }
    return written;
  }();
  return files;
}

}  // namespace qkv::fuzz
