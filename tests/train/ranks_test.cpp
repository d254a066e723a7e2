#include <doctest/doctest.h>

#include <csignal>
#include <limits>
#include <mutex>

#include "core/ops.h"
#include "optim/optimizer.h"
#include "tests/support/errors.h"
#include "tests/support/four_shards.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/tiny_config.h"
#include "train/loop/session.h"
#include "train/loop/step.h"
#include "train/run/run.h"
#include "train/storage/durable_file.h"

namespace qkv::tests::ranks_test {
namespace {

/// A classifier with two shards in a batch.
Config two_shards(const TempDir& dir) {
  Config config = tiny_config(TaskKind::classify, dir.write("data.tsv", labelled("yes", "no")), 4);
  config.task.valid = config.task.test = config.task.train;
  config.model.feed_forward = 8;
  config.model.dropout = 0.1;
  config.train.steps = 6;
  config.train.batch = 5;
  config.train.eval_every = 2;
  config.train.checkpoint_every = 2;
  return config;
}

struct Messages : Callback {
  void on_message(const std::string& line) override { all += line + "\n"; }
  std::string all;
};

/// The messages of rank 0.
std::string train_on(Index size, const Config& config, const RunFolder& folder) {
  Messages messages;
  on_ranks(size, [&](const Communicator& ranks) {
    Run run = start_run(config);
    Callback silent;
    start(run, folder, ranks.rank() == 0 ? messages : silent, ranks);
  });
  return messages.all;
}

void resume_on(Index size, const Config& config, const RunFolder& folder) {
  on_ranks(size, [&](const Communicator& ranks) {
    Callback callback;
    const auto [checkpoint, file] = newest_valid_checkpoint(folder, callback);
    Run run = restore_run(config, checkpoint, file);
    resume(run, folder, callback, ranks);
  });
}

std::string bytes_of(const std::filesystem::path& file) {
  return read_file(file, std::numeric_limits<std::uint64_t>::max());
}

void check_same_bytes(const RunFolder& a, const RunFolder& b) {
  CHECK(bytes_of(a.last()) == bytes_of(b.last()));
  CHECK(bytes_of(a.best()) == bytes_of(b.best()));
}

}  // namespace

TEST_CASE("a step has the same bits on any number of ranks, which share its shards") {
  const Config config = four_shards();
  const Run run = start_run(config);
  Stepper stepper(run);
  REQUIRE(stepper.plan().shards.count == 4);
  const StepGradients alone = stepper.gradients();
  for (const Index size : {1, 2, 3, 4, 5}) {
    CAPTURE(size);
    std::mutex checks;  // of doctest
    on_ranks(size, [&](const Communicator& ranks) {
      const Run own = start_run(config);
      const StepGradients together = Stepper(own, ranks).gradients();
      const std::scoped_lock lock(checks);
      CHECK(together.loss == alone.loss);
      CHECK(together.tokens == alone.tokens);
      CHECK(together.weight == alone.weight);
      CHECK(together.gradients.norm() == alone.gradients.norm());
      for (std::size_t i = 0; i < run.parameters.size(); ++i) {
        CAPTURE(run.parameters[i].path);
        CHECK(together.gradients.of(*own.parameters[i].parameter).values() ==
              alone.gradients.of(*run.parameters[i].parameter).values());
      }
    });
  }
}

TEST_CASE(
    "gradients that only some ranks have are summed as in one process, zeros with their sign") {
  Parameter a(Tensor::zeros({3})), b(Tensor::zeros({2})), c(Tensor::zeros({1}));
  const std::vector<NamedParameter> parameters = {{"a", &a}, {"b", &b}, {"c", &c}};
  // Four shards, none of which has a gradient of c.
  const auto gradients_of_shard = [&](Index shard) {
    Gradients::Entries entries;
    if (shard > 0) entries.emplace_back(b.node(), Tensor::from({-0.0, 1e8}, {2}));
    if (shard != 2) entries.emplace_back(a.node(), Tensor::from({-0.0, 0.1, -1e8}, {3}));
    return Gradients(std::move(entries));
  };
  const auto of = [&](Subtree node) {
    const auto leaf = [&](Subtree n) -> std::optional<StepGradients> {
      if (n.count > 1) return std::nullopt;
      return StepGradients{{.loss = 0.1, .weight = 1}, gradients_of_shard(n.first)};
    };
    return tree_sum(node, leaf,
                    [](StepGradients& sum, StepGradients term) { sum += std::move(term); });
  };
  StepGradients alone = of({0, 4});
  const Gradients::Entries expected = alone.gradients.release();
  for (const Index size : {2, 3, 6}) {
    CAPTURE(size);
    std::mutex checks;
    on_ranks(size, [&](const Communicator& ranks) {
      const Chunks by_rank{4, ranks.size()};
      std::vector<PartialSum<StepGradients>> own;
      for (const Subtree node : subtrees(by_rank.begin(ranks.rank()), by_rank.end(ranks.rank())))
        own.push_back({node, of(node)});
      StepGradients together = GradientSum(parameters, ranks).sum(4, std::move(own));
      const std::scoped_lock lock(checks);
      CHECK(together.loss == alone.loss);
      CHECK(together.weight == 4);
      CHECK(together.gradients.size() == expected.size());
      for (const auto& [parameter, gradient] : expected) {
        const auto bits = [](const Tensor& tensor) {
          const auto bytes = std::as_bytes(tensor.data<float>());
          return std::vector(bytes.begin(), bytes.end());
        };
        CHECK(bits(together.gradients.release(parameter)) == bits(gradient));
      }
    });
  }
}

TEST_CASE("gradients of more elements than are exchanged at a time are summed") {
  Parameter a(Tensor::zeros({bucket_length - 1})), b(Tensor::zeros({bucket_length}));
  const std::vector<NamedParameter> parameters = {{"a", &a}, {"b", &b}};
  std::mutex checks;
  on_ranks(2, [&](const Communicator& ranks) {
    Gradients::Entries own;
    own.emplace_back(a.node(), Tensor::full({bucket_length - 1}, 1));
    own.emplace_back(b.node(), Tensor::full({bucket_length}, 2));
    std::vector<PartialSum<StepGradients>> shard;
    shard.push_back({{ranks.rank(), 1}, {{.weight = 1}, Gradients(std::move(own))}});
    const StepGradients both = GradientSum(parameters, ranks).sum(2, std::move(shard));
    const std::scoped_lock lock(checks);
    CHECK(both.weight == 2);
    CHECK(both.gradients.of(a).values() == Tensor::full({bucket_length - 1}, 2).values());
    CHECK(both.gradients.of(b).values() == Tensor::full({bucket_length}, 4).values());
  });
}

TEST_CASE("a rank that cannot compute its shards ends the exchange of all ranks") {
  CHECK_THROWS_AS(on_ranks(2,
                           [](const Communicator& ranks) {
                             const Run run = start_run(four_shards());
                             Parameter& weight = *run.parameters.front().parameter;
                             if (ranks.rank() == 1)
                               weight.assign(Tensor::full(weight.shape(),
                                                          std::numeric_limits<double>::infinity()));
                             const DetectAnomaly detect;
                             Stepper(run, ranks).gradients();
                           }),
                  AnomalyError);
}

TEST_CASE("a run on several ranks writes the files of one process, with every optimizer") {
  for (const OptimizerRow& row : optimizer_kinds()) {
    CAPTURE(row.name);
    const TempDir dir;
    Config config = two_shards(dir);
    config.optimizer.kind = row.value;
    config.train.ema = row.value == OptimizerKind::adamw ? 0.9 : 0;
    config.train.accumulate = row.value == OptimizerKind::sgd ? 3 : 1;
    const RunFolder one(dir.path() / "1"), two(dir.path() / "2"), three(dir.path() / "3");
    train_on(1, config, one);
    CHECK(train_on(2, config, two).find("2 ranks share 2 shards of each batch") !=
          std::string::npos);
    train_on(3, config, three);
    check_same_bytes(one, two);
    check_same_bytes(one, three);
  }
}

TEST_CASE("train.patience, which rank 0 alone can judge, ends all ranks after the same step") {
  const TempDir dir;
  Config config = two_shards(dir);
  config.task.valid = dir.write("valid.tsv", labelled("no", "yes")).string();
  config.optimizer.lr = 0.5;
  config.train.steps = 60;
  config.train.patience = 3;
  const RunFolder one(dir.path() / "1"), two(dir.path() / "2");
  train_on(1, config, one);
  REQUIRE(read_checkpoint(one.last()).step < config.train.steps);
  train_on(2, config, two);
  check_same_bytes(one, two);
}

TEST_CASE("a run resumes on another number of ranks to the bytes of one process") {
  const TempDir dir;
  const Config config = two_shards(dir);
  const RunFolder one(dir.path() / "1"), several(dir.path() / "2");
  train_on(1, config, one);
  Config half = config;
  half.train.steps = 2;
  train_on(3, half, several);
  half.train.steps = 4;
  resume_on(1, half, several);
  resume_on(2, config, several);
  check_same_bytes(one, several);
}

TEST_CASE("ranks with another config, other data or other parameters are refused") {
  const TempDir dir;
  const Config config = two_shards(dir);
  const RunFolder folder(dir.path() / "run");
  const auto error = [&](const auto& change) {
    return error_of<UserError>([&] {
      on_ranks(3, [&](const Communicator& ranks) {
        Config own = config;
        if (ranks.rank() == 2) change(own);
        Run run = start_run(own);
        if (ranks.rank() == 2 && own == config)
          run.parameters.front().parameter->assign(
              Tensor::full(run.parameters.front().parameter->shape(), 1));
        Callback callback;
        start(run, folder, callback, ranks);
      });
    });
  };
  CHECK(error([](Config& own) {
          own.seed = 2;
        }).starts_with("rank 2 has another config than rank 0; "));
  CHECK(error([&](Config& own) {
          own.task.train = dir.write("other.tsv", "yes\tgood day\nno\tbad week\n").string();
        }).starts_with("rank 2 has other data than rank 0; "));
  CHECK(error([](Config&) {}).starts_with("rank 2 has other parameters than rank 0; "));
  CHECK_FALSE(folder.holds_run());
}

TEST_CASE("the same data in another place are the same") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  const Config config = two_shards(dir);
  Config elsewhere = config;
  elsewhere.task.train = dir.write("copy.tsv", labelled("yes", "no")).string();
  on_ranks(2, [&](const Communicator& ranks) {
    const Config& own = ranks.rank() == 1 ? elsewhere : config;
    Run run = start_run(own);
    Callback callback;
    start(run, folder, callback, ranks);
  });
  CHECK(folder.newest_step() == 6);
}

TEST_CASE("a rank whose parameters went wrong is found before a checkpoint is saved") {
  const TempDir dir;
  const Config config = two_shards(dir);
  const RunFolder folder(dir.path() / "run");
  /// Changes a parameter after step 3, as a fault of memory would.
  struct Fault : Callback {
    explicit Fault(Run& run) : run(run) {}
    void on_step(const StepReport& report) override {
      Parameter& parameter = *run.parameters.front().parameter;
      if (report.step == 3) parameter.assign(Tensor::full(parameter.shape(), 1));
    }
    Run& run;
  };
  CHECK(error_of<Error>([&] {
          on_ranks(2, [&](const Communicator& ranks) {
            Run run = start_run(config);
            Callback silent;
            Fault fault(run);
            start(run, folder, ranks.rank() == 1 ? fault : silent, ranks);
          });
        }).starts_with("step 4: rank 1 has other parameters or optimizer state than rank 0"));
  CHECK(folder.newest_step() == 2);
}

TEST_CASE("a signal to one rank stops all of them after the same step, with a checkpoint") {
  const TempDir dir;
  const Config config = two_shards(dir);
  const RunFolder folder(dir.path() / "run"), whole(dir.path() / "whole");
  struct Stopped : Callback {
    void on_step(const StepReport& report) override { step = report.step; }
    int stop_signal() override { return step == 3 ? SIGTERM : 0; }
    std::int64_t step = 0;
  };
  std::mutex checks;
  on_ranks(3, [&](const Communicator& ranks) {
    Run run = start_run(config);
    Callback silent;
    Stopped stopped;
    const Outcome outcome = start(run, folder, ranks.rank() == 1 ? stopped : silent, ranks);
    const std::scoped_lock lock(checks);
    CHECK(outcome.signal == SIGTERM);
    CHECK(run.step == 3);
  });
  CHECK(folder.newest_step() == 3);
  resume_on(2, config, folder);
  train_on(1, config, whole);
  check_same_bytes(whole, folder);
}

}  // namespace qkv::tests::ranks_test
