#include "train/run/transfer.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_config.h"
#include "train/loop/session.h"
#include "train/run/run.h"

namespace qkv::transfer_test {

namespace {

constexpr std::string_view text = "the bank of the river\nmoney in the bank\n";
constexpr std::string_view senses = "money\t1\tthe bank pays\nriver\t1\tthe bank floods\n";

Config config_of(TaskKind kind, const std::filesystem::path& train) {
  Config config = tiny_config(kind, train, 8);
  config.model.layers = 2;
  config.model.feed_forward = 8;
  config.optimizer.weight_decay = 0.1;
  config.train.steps = 4;
  config.train.batch = 2;
  config.train.checkpoint_every = config.train.eval_every = 2;
  return config;
}

/// A trained model in a folder of its own, and configs of runs that start from it.
class Trained {
 public:
  explicit Trained(
      TaskKind kind = TaskKind::masked_language_model, std::string_view data = text,
      const std::function<void(Config&)>& change = [](Config&) {})
      : config_(config_of(kind, dir_.write("text", data))) {
    config_.name = "general";
    change(config_);
    Run run = start_run(config_);
    Callback callback;
    start(run, RunFolder(folder()), callback);
    parameters_ = state_of(*run.network);
    tokens_ = run.task->vocabulary().tokens();
  }

  Config next(TaskKind kind = TaskKind::word_sense, std::string_view data = senses) const {
    Config config = config_of(kind, dir_.write("train.tsv", data));
    config.train.init = folder().string();
    return config;
  }

  std::filesystem::path folder() const { return dir_.path() / "general"; }
  const std::map<std::string, Tensor>& parameters() const { return parameters_; }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  TempDir dir_;
  Config config_;
  std::map<std::string, Tensor> parameters_;
  std::vector<std::string> tokens_;
};

std::vector<double> row(const Tensor& table, Index i) {
  return slice(table, 0, i, i + 1).values();
}

struct Messages : Callback {
  void on_message(const std::string& line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

std::string start_error(const Config& config) {
  return error_of<UserError>([&] { start_run(config); });
}

}  // namespace

TEST_CASE("a run starts from parameters of equal path and shape and from the vectors of tokens") {
  const Trained from;
  Messages messages;
  const Run run = start_run(from.next(), messages);
  const auto state = state_of(*run.network);
  for (const auto& [path, value] : from.parameters()) {
    CAPTURE(path);
    if (path.starts_with("encoder.")) CHECK(state.at(path).values() == value.values());
  }
  const auto& tokens = run.task->vocabulary().tokens();
  CHECK(tokens.size() == from.tokens().size() + 2);
  CHECK(std::equal(from.tokens().begin(), from.tokens().end(), tokens.begin()));
  const Tensor table = from.parameters().at("embedding.weight");
  CHECK(slice(state.at("embedding.weight"), 0, 0, table.dim(0)).values() == table.values());
  REQUIRE(messages.lines.size() == 4);
  CHECK(messages.lines[0].starts_with("starts from general, step 4 (XXH3 hash of its parameters "));
  CHECK(messages.lines[1] == fmt::format("loaded: {} parameters, {} of {} rows of embedding.weight",
                                         from.parameters().size() - 3, from.tokens().size(),
                                         tokens.size()));
  CHECK(messages.lines[2] ==
        "newly initialised: head.weight (tokens there, labels here), head.bias (tokens there, "
        "labels here)");
  CHECK(messages.lines[3] == "2 new tokens: floods, pays");
}

TEST_CASE("attention with other heads is initialised as without the trained model, and said so") {
  const Trained from;
  Config config = from.next();
  config.model.heads = 4;
  config.model.norm = NormKind::post;
  Messages messages;
  const Run run = start_run(config, messages);
  Network fresh(config.model, {}, run.task->vocabulary().size(), 2,
                Random(config.seed, Purpose::initialisation));
  const auto state = state_of(*run.network), untouched = state_of(fresh);
  const std::string query = "encoder.layers.0.attention.w_q.weight",
                    hidden = "encoder.layers.0.feed_forward.w_1.weight";
  CHECK(state.at(query).values() == untouched.at(query).values());
  CHECK(state.at(hidden).values() == from.parameters().at(hidden).values());
  const auto says = [&](std::string_view part) {
    return std::ranges::any_of(messages.lines,
                               [&](const auto& line) { return line.find(part) != line.npos; });
  };
  CHECK(says(query + " (2 heads there, 4 heads here)"));
  CHECK(says("it was trained with model.heads = 2 (now 4), model.norm = \"pre\" (now \"post\")"));
}

TEST_CASE("what the trained model does not have is initialised as without it") {
  const Trained from;
  const Config config = from.next();
  const Run run = start_run(config);
  const Network fresh(config.model, {}, run.task->vocabulary().size(), 2,
                      Random(config.seed, Purpose::initialisation));
  CHECK(run.network->head->weight.value().values() == fresh.head->weight.value().values());
  const Index id = run.task->vocabulary().id("pays");
  CHECK(row(run.network->model->embedding_table(), id) == row(fresh.model->embedding_table(), id));
}

TEST_CASE("rows of the output layer go by label or token, not by their place") {
  const Trained from(TaskKind::classify, "bad\tdull\ngood\tfine\n");
  Messages messages;
  const Run run = start_run(from.next(TaskKind::classify, "good\tnew\nugly\told\n"), messages);
  const auto head = [](const auto& state) { return state.at("head.weight"); };
  CHECK(row(head(state_of(*run.network)), 0) == row(head(from.parameters()), 1));
  CHECK(messages.lines[1].find("1 of 2 rows of head.weight") != std::string::npos);
  const Run other = start_run(from.next(TaskKind::classify, "a\tnew\nb\told\n"), messages);
  CHECK(messages.lines.back().find("new tokens") != std::string::npos);
  const auto fresh = std::ranges::find_if(
      messages.lines, [](const auto& l) { return l.find("head.bias (other labels)") != l.npos; });
  CHECK(fresh != messages.lines.end());

  const Trained general;
  const Run continued =
      start_run(general.next(TaskKind::masked_language_model, "money of the bank bank bank\n"));
  const auto& tokens = continued.task->vocabulary().tokens();
  CHECK(tokens == general.tokens());
  CHECK(head(state_of(*continued.network)).values() == head(general.parameters()).values());
}

TEST_CASE("an output layer without labels or tokens goes by its shape") {
  constexpr std::string_view pronouns = "0\t2\tdog saw it\n1\t3\tthe cat and it\n";
  const Trained from(TaskKind::coreference, pronouns);
  const Run run = start_run(from.next(TaskKind::coreference, pronouns));
  for (const auto& [path, value] : state_of(*run.network))
    CHECK(value.values() == from.parameters().at(path).values());
}

TEST_CASE("byte pairs are those of the trained model") {
  const auto bpe = [](Config& config) {
    config.task.tokenizer = TokenizerKind::bpe;
    config.task.merges = 10;
  };
  const Trained from(TaskKind::masked_language_model, text, bpe);
  Config config = from.next();
  config.model.max_length = 40;
  bpe(config);
  CHECK(start_run(config).task->vocabulary().tokens() == from.tokens());
}

TEST_CASE("a trained model that cannot serve is refused with the reason") {
  const Trained from;
  Config config = from.next();
  config.task.lower_case = false;
  CHECK(start_error(config) ==
        fmt::format("train.init: {} was trained with task.tokenizer = \"word\", task.lower_case = "
                    "true, task.ngrams = 1; this run has task.tokenizer = \"word\", "
                    "task.lower_case = false, task.ngrams = 1",
                    from.folder().string()));
  config = from.next();
  config.model.width = 12;
  CHECK(
      start_error(config) ==
      fmt::format("train.init: {} was trained with model.width = 8; this run has model.width = 12",
                  from.folder().string()));
  config = from.next();
  config.train.init = "nowhere";
  CHECK(start_error(config).find("nowhere") != std::string::npos);
  const auto conflict = [&](auto change) {
    Config other = from.next();
    change(other);
    return error_of<ConfigError>([&] { parse_config(to_toml(other), "c"); });
  };
  CHECK(conflict([](Config& c) {
          c.init = InitKind::naive_bayes;
          c.model.layers = 1;
          c.model.feed_forward = 0;
          c.model.norm = NormKind::none;
          c.model.position = PositionKind::none;
        }).ends_with("train.init needs model.init = \"random\""));
  CHECK(conflict([](Config& c) {
          c.model.embedding = EmbeddingKind::one_hot;
        }).ends_with("train.init needs model.embedding = \"learned\""));
}

TEST_CASE("layers that only one of the two models has are named") {
  const Trained from;
  Config config = from.next();
  config.model.layers = 1;
  Messages messages;
  const Run shallow = start_run(config, messages);
  CHECK(messages.lines.back().starts_with("not used of general: encoder.layers.1."));
  config.model.layers = 3;
  const Run deep = start_run(config, messages);
  CHECK(shallow.init != deep.init);
  CHECK(deep.init.find("newly initialised: encoder.layers.2.") != std::string::npos);
}

TEST_CASE("a run resumes bit for bit without the model that it started from, and remembers it") {
  const Trained from;
  const Config config = from.next();
  const TempDir dir;
  const RunFolder folder(dir.path() / "whole");
  Run run = start_run(config);
  Callback callback;
  start(run, folder, callback);
  std::filesystem::remove_all(from.folder());
  const auto half = folder.checkpoint(2);
  const Checkpoint checkpoint = read_checkpoint(half);
  CHECK(checkpoint.init == run.init);
  CHECK(load_model(folder.path()).init == run.init);
  Run resumed = restore_run(config, checkpoint, half);
  CHECK(resumed.init == run.init);
  const RunFolder second(dir.path() / "second");
  second.create();
  std::filesystem::copy_file(folder.best(), second.best());
  train(resumed, second, callback);
  const Checkpoint expected = read_checkpoint(folder.last()),
                   found = read_checkpoint(second.last());
  for (const auto& [path, value] : expected.model)
    CHECK(value.values() == found.model.at(path).values());
  CHECK(task_with_data(resumed, callback)->vocabularies() == resumed.task->vocabularies());
}

TEST_CASE("the model before its first step is the one that a run started from") {
  const Trained from;
  const Config config = from.next();
  const Run run = start_run(config);
  const TempDir dir;
  const auto file = dir.path() / "c.h5";
  write_checkpoint(file, run.checkpoint({}));
  const LoadedModel before = untrained(load_model(file));
  CHECK(state_of(*before.network).at("embedding.weight").values() ==
        state_of(*run.network).at("embedding.weight").values());
}

TEST_CASE("frozen parts keep every bit, and all others learn") {
  const TempDir dir;
  Config config = config_of(TaskKind::word_sense, dir.write("train.tsv", senses));
  config.train.freeze = {"embedding", "layers.0", "encoder.layers.1.attention"};
  Run run = start_run(config);
  const auto before = state_of(*run.network);
  Messages messages;
  const RunFolder folder(dir.path() / "run");
  start(run, folder, messages);
  CHECK(messages.lines[0].find(" frozen), 2 training examples") != std::string::npos);
  for (const auto& [path, value] : state_of(*run.network)) {
    CAPTURE(path);
    const bool frozen = path.starts_with("embedding.") || path.starts_with("encoder.layers.0.") ||
                        path.starts_with("encoder.layers.1.attention.");
    CHECK((value.values() == before.at(path).values()) == frozen);
  }
  CHECK(run.optimizer->state().empty());  // which a trained model does not need
  const auto state = read_checkpoint(folder.last()).optimizer;
  CHECK(!state.empty());
  for (const auto& [name, value] : state) CHECK(name.find("layers.0.") == std::string::npos);
}

TEST_CASE("a part that the model does not have is refused with the nearest that it has") {
  const TempDir dir;
  Config config = config_of(TaskKind::word_sense, dir.write("train.tsv", senses));
  const auto error = [&](std::vector<std::string> names) {
    config.train.freeze = std::move(names);
    return start_error(config);
  };
  CHECK(error({"head", "embeding"}) ==
        "train.freeze: \"embeding\" is no part of the model; did you mean \"embedding\"?");
  CHECK(error({"layers.2"}) ==
        "train.freeze: \"layers.2\" is no part of the model; did you mean \"layers.0\"?");
  CHECK(error({"quite another"}) ==
        "train.freeze: \"quite another\" is no part of the model; it has: embedding, positions, "
        "encoder, encoder.layers.0, encoder.layers.1, encoder.norm, head");
  CHECK(error({"embedding", "encoder", "head"}) == "train.freeze leaves no parameter to train");
}

}  // namespace qkv::transfer_test
