#include "inspect/ablation.h"

#include <doctest/doctest.h>

#include "tests/support/modules.h"

using namespace qkv;

namespace {

const std::string data = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";

Run run_of(const ModelOptions& model) {
  Config config;
  config.name = "small";
  config.task.train = config.task.valid = config.task.test = data;
  config.model = model;
  Run run = start_run(config);
  tests::assign_normal(*run.network);
  return run;
}

const ModelOptions small{.width = 8, .layers = 2, .heads = 2, .feed_forward = 12};

Evaluate evaluating(const Run& run) {
  return [&run](const EvaluationOptions& options) {
    return run.task->evaluate(*run.network, Split::valid, options);
  };
}

}  // namespace

TEST_CASE("components are every head and every feed-forward block, in the order of computing") {
  const Run run = run_of(small);
  std::vector<std::string> ids;
  for (const Component& component : components(*run.network)) ids.push_back(component.id);
  CHECK(ids == std::vector<std::string>{"0.0", "0.1", "0.ff", "1.0", "1.1", "1.ff"});
}

TEST_CASE("where there are two stacks, ids name them, and cross-attention has heads of its own") {
  Random random = tests::fresh();
  Network network({.kind = ModelKind::encoder_decoder, .width = 8, .layers = 1, .heads = 2}, {}, 9,
                  9, random);
  std::vector<std::string> ids;
  for (const Component& component : components(network)) ids.push_back(component.id);
  CHECK(ids == std::vector<std::string>{"encoder.0.0", "encoder.0.1", "encoder.0.ff", "decoder.0.0",
                                        "decoder.0.1", "decoder.0.cross.0", "decoder.0.cross.1",
                                        "decoder.0.ff"});
}

TEST_CASE("a head that is zero is a head whose columns of W_o are zero") {
  Run run = run_of(small);
  const Ablation ablation(run, evaluating(run));
  const double found =
      ablation.without({component_of(ablation.components(), "1.1")}, AblationKind::zero).loss;
  CHECK(found != run.task->evaluate(*run.network, Split::valid).loss);
  Parameter& w_o = stacks_of(*run.network)[0].second->layers[1].attention.w_o->weight;
  w_o.assign(w_o.value().detach() * (1 - range_mask(4, 8, 8)));
  CHECK(run.task->evaluate(*run.network, Split::valid).loss ==
        doctest::Approx(found).epsilon(1e-6));
}

TEST_CASE("a feed-forward block that is zero is one whose second layer is zero") {
  Run run = run_of(small);
  const Ablation ablation(run, evaluating(run));
  const double found =
      ablation.without({component_of(ablation.components(), "0.ff")}, AblationKind::zero).loss;
  Linear& w_2 = stacks_of(*run.network)[0].second->layers[0].feed_forward->w_2;
  w_2.weight.assign(Tensor::zeros(w_2.weight.shape()));
  w_2.bias->assign(Tensor::zeros(w_2.bias->shape()));
  CHECK(run.task->evaluate(*run.network, Split::valid).loss ==
        doctest::Approx(found).epsilon(1e-6));
}

TEST_CASE("the mean is that over the tokens of the examples, not over padding") {
  Run run = run_of(small);
  const Ablation ablation(run, evaluating(run));
  const double found =
      ablation.without({component_of(ablation.components(), "0.ff")}, AblationKind::mean).loss;
  // The mean of the block's outputs, each sentence alone, as the bias of a block without weights.
  TransformerBlock& block = stacks_of(*run.network)[0].second->layers[0];
  Tensor total;
  Index tokens = 0;
  ReadCallback silent;
  run.task->for_each_line(data, silent, [&](TsvRow& row) {
    const NoGrad no_grad;
    Recorder recorder(*run.network);
    Context context({.recorder = &recorder});
    const Sentence sentence = run.task->read(row.fields.back());
    run.task->scores(*run.network, sentence, 0, context);
    const Tensor sums = sum(recorder.at(*block.feed_forward, "output"), {0, 1});
    total = total ? total + sums : sums;
    tokens += std::ssize(sentence.ids);
  });
  Linear& w_2 = block.feed_forward->w_2;
  w_2.weight.assign(Tensor::zeros(w_2.weight.shape()));
  w_2.bias->assign(total / static_cast<double>(tokens));
  CHECK(run.task->evaluate(*run.network, Split::valid).loss ==
        doctest::Approx(found).epsilon(1e-5));
}

TEST_CASE("ablating nothing changes nothing, and several components at once more than one") {
  const Run run = run_of(small);
  const Ablation ablation(run, evaluating(run));
  const double whole = run.task->evaluate(*run.network, Split::valid).loss;
  CHECK(ablation.without({}, AblationKind::zero).loss == whole);
  const double both = ablation.without(ablation.components(), AblationKind::mean).loss;
  const double one = ablation.without({ablation.components()[0]}, AblationKind::mean).loss;
  CHECK(both != one);
}

TEST_CASE("a model without blocks has nothing to ablate, and an unknown component is named") {
  const Run run = run_of({.kind = ModelKind::static_embedding, .width = 8});
  CHECK_THROWS_WITH_AS(Ablation(run, evaluating(run)),
                       "the model has no attention heads or feed-forward blocks to ablate; take a "
                       "transformer",
                       UserError);
  const Run other = run_of({.width = 8, .layers = 1, .heads = 2, .feed_forward = 0});
  CHECK_THROWS_WITH_AS(component_of(components(*other.network), "0.2"),
                       "the model has no component 0.2; it has 0.0 0.1", UserError);
}
