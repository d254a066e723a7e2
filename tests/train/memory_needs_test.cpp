#include "train/memory/memory_needs.h"

#include <doctest/doctest.h>

#include "core/memory_limit.h"
#include "layers/model.h"
#include "tests/support/errors.h"
#include "train/tasks/network.h"

using namespace qkv;

namespace {

constexpr Index vocabulary = 23, outputs = 7;

ModelOptions options_of(ModelKind kind) {
  ModelOptions options;
  options.kind = kind;
  options.width = 20;
  options.layers = 3;
  options.feed_forward = 28;
  options.max_length = 9;
  return options;
}

}  // namespace

TEST_CASE("the parameters of every kind of model are counted without storage") {
  for (const ModelRow& row : model_kinds())
    for (const bool tied : {false, true}) {
      CAPTURE(row.name);
      const ModelOptions options = options_of(row.value);
      const HeadOptions head{.tied = tied};
      Network network(options, head, vocabulary, outputs, Random(1, Purpose::initialisation));
      CHECK(parameter_count(options, head, vocabulary, outputs) ==
            static_cast<double>(parameter_count(network)));
    }
  ModelOptions large = options_of(ModelKind::encoder);
  large.width = 4096;
  large.feed_forward = 65536;
  large.layers = 64;
  large.embedding = EmbeddingKind::one_hot;
  CHECK(parameter_count(large, {}, Index{1} << 22, outputs) > 5e10);
}

TEST_CASE(
    "the memory of training counts weights, optimizer, average, gradients and the checkpoint") {
  Config config;
  config.model = options_of(ModelKind::encoder);
  config.optimizer.kind = OptimizerKind::adamw;
  const MemoryNeeds adam = memory_needs(config, vocabulary, outputs);
  CHECK(adam.state == 12 * adam.parameters);
  CHECK(adam.gradients == 4 * adam.parameters);
  CHECK(adam.checkpoint == 12 * adam.parameters);
  config.train.ema = 0.9;
  config.optimizer.amsgrad = true;
  CHECK(memory_needs(config, vocabulary, outputs).state == 20 * adam.parameters);
  config.optimizer.kind = OptimizerKind::muon;  // of hidden matrices the first moment alone
  CHECK(memory_needs(config, vocabulary, outputs).state == 12 * adam.parameters);
  config.train.batch = 100;
  config.train.accumulate = 10;
  CHECK(memory_needs(config, vocabulary, outputs).order == 8000);
}

TEST_CASE("a training that cannot fit is refused with what to lower, one that fits is not") {
  Config config;
  config.model = options_of(ModelKind::encoder);
  const auto needs = static_cast<std::uint64_t>(memory_needs(config, vocabulary, outputs).total());
  require_training_memory(config, vocabulary, outputs, needs + 1);
  const std::string error =
      error_of<UserError>([&] { require_training_memory(config, vocabulary, outputs, needs - 1); });
  CHECK(error.starts_with("training takes at least " + memory_size(static_cast<double>(needs))));
  CHECK(
      error.ends_with("lower model.width, model.feed_forward or model.layers, or raise "
                      "task.min_count"));
  config.train.batch = config.train.accumulate = 65536;
  CHECK(error_of<UserError>([&] {
          require_training_memory(config, vocabulary, outputs, std::uint64_t{1} << 34);
        }).ends_with("32.0 GiB for the order of examples; lower train.batch or train.accumulate"));
  require_network_memory(config.model, {}, vocabulary, outputs, std::uint64_t{1} << 20);
  CHECK_THROWS_AS(require_network_memory(config.model, {}, vocabulary, outputs, 1000), UserError);
}

TEST_CASE("a training that does not fit into train.memory is refused") {
  Config config;
  config.model = options_of(ModelKind::encoder);
  config.train.memory = "1KB";
  CHECK(error_of<UserError>([&] {
          require_training_memory(config, vocabulary, outputs, std::uint64_t{1} << 34);
        }).find("and train.memory is 1000 bytes: ") != std::string::npos);
  config.train.memory = "1TB";
  require_training_memory(config, vocabulary, outputs, std::uint64_t{1} << 34);
}

TEST_CASE("a recomputed layer of a transformer keeps its input, another layer what it computed") {
  Config config;
  config.model = options_of(ModelKind::encoder);
  const auto kept = [&](bool recomputed) {
    const double all = activation_bytes(config, outputs, 100, recomputed);
    config.model.layers += 1;
    const double more = activation_bytes(config, outputs, 100, recomputed);
    config.model.layers -= 1;
    return more - all;
  };
  CHECK(kept(false) == 4 * 100 * (6 * 20 + 28));
  CHECK(kept(true) == 4 * 100 * 20);
  config.model.kind = ModelKind::recurrent;
  CHECK(kept(true) == kept(false));
}

TEST_CASE("sizes of memory are read with decimal and binary units, and nothing else is") {
  CHECK(parse_memory_size("4GB") == 4e9);
  CHECK(parse_memory_size("512 MiB") == 536870912);
  CHECK(parse_memory_size("1.5KiB") == 1536);
  CHECK(parse_memory_size("7B") == 7);
  for (const std::string_view wrong :
       {"", "4", "GB", "-1GB", "0GB", "4gb", "4 GB ", "nanGB", "1e999GB", "4GBs"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_memory_size(wrong));
  }
}

TEST_CASE("sizes of memory have one decimal and the unit that suits") {
  CHECK(memory_size(0) == "0 bytes");
  CHECK(memory_size(1023) == "1023 bytes");
  CHECK(memory_size(1536) == "1.5 KiB");
  CHECK(memory_size(54975581388.8) == "51.2 GiB");
  CHECK(memory_size(1e30).ends_with(" EiB"));
  CHECK(memory_limit() > 0);
}
