#include "inspect/loss_gradients.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "inspect/weight_statistics.h"
#include "tests/support/errors.h"

using namespace qkv;

namespace {

Run small_run(ModelKind kind, bool tied = false) {
  Config config;
  config.name = "small";
  config.task.train = QKV_SOURCE_DIR "/datasets/bank-twins/valid.tsv";
  config.model = {.kind = kind, .width = 6, .layers = 1, .heads = 2, .feed_forward = 8};
  if (tied) {
    config.task.kind = TaskKind::language_model;
    config.model.kind = ModelKind::decoder;
    config.head.tied = true;
  }
  Run run = start_run(config);
  convert(*run.network, DType::float64);
  return run;
}

std::shared_ptr<Parameter> table_of(Network& network) {
  return parameters(network).front().parameter;
}

/// -log of the answer's probability, by the task itself.
double loss_of(Run& run, const LabelledText& text, std::size_t answer) {
  const NoGrad no_grad;
  Context context;
  const Scores scores = run.task->scores(*run.network, text.sentence, text.index, context);
  return -log_softmax(scores.logits).values()[answer];
}

/// The numeric derivative of minus the loss by a factor of the row of a word in the table.
double numeric_contribution(Run& run, const LabelledText& text, std::size_t answer,
                            std::size_t word) {
  constexpr double step = 1e-5;
  const auto table = table_of(*run.network);
  const Tensor before = table->value().detach();
  const auto width = static_cast<std::size_t>(before.dim(1));
  double loss[2];
  for (const int side : {0, 1}) {
    auto values = before.values();
    const auto row = values.begin() + text.sentence.ids[word] * static_cast<Index>(width);
    std::transform(row, row + static_cast<Index>(width), row,
                   [&](double value) { return value * (side ? 1 + step : 1 - step); });
    table->assign(Tensor::from(values, before.shape(), DType::float64));
    loss[side] = loss_of(run, text, answer);
  }
  table->assign(before);
  return (loss[0] - loss[1]) / (2 * step);
}

/// The norm of the numeric derivative of the loss by the row of a word in the table.
double numeric_norm(Run& run, const LabelledText& text, std::size_t answer, std::size_t word) {
  constexpr double step = 1e-5;
  const auto table = table_of(*run.network);
  const Tensor before = table->value().detach();
  const auto width = static_cast<std::size_t>(before.dim(1));
  double squares = 0;
  for (std::size_t i = 0; i < width; ++i) {
    double loss[2];
    for (const int side : {0, 1}) {
      auto values = before.values();
      values[static_cast<std::size_t>(text.sentence.ids[word]) * width + i] += side ? step : -step;
      table->assign(Tensor::from(values, before.shape(), DType::float64));
      loss[side] = loss_of(run, text, answer);
    }
    squares += std::pow((loss[1] - loss[0]) / (2 * step), 2);
  }
  table->assign(before);
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE(
    "norms and contributions of the words are those of numeric derivatives, and the model stays") {
  for (const ModelKind kind :
       {ModelKind::encoder, ModelKind::recurrent, ModelKind::static_embedding}) {
    CAPTURE(static_cast<int>(kind));
    Run run = small_run(kind);
    const LabelledText text = run.task->read_line(tsv_row("river\t1\tmoney bank grows"));
    const auto before = table_of(*run.network)->value().values();
    const LossGradients found = loss_gradients(run, text);
    CHECK(table_of(*run.network)->value().values() == before);
    const std::size_t river = 1;  // labels are in alphabetic order
    CHECK(found.loss == doctest::Approx(loss_of(run, text, river)));
    REQUIRE(found.words.size() == 3);
    for (const std::size_t word : {0u, 1u, 2u}) {
      CHECK(found.words[word] ==
            doctest::Approx(numeric_norm(run, text, river, word)).epsilon(1e-6));
      CHECK(found.contributions[word] ==
            doctest::Approx(numeric_contribution(run, text, river, word)).epsilon(1e-6));
    }
  }
}

TEST_CASE("every parameter has its gradient, the embedding table too, tied or not") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    Run run = small_run(tied ? ModelKind::decoder : ModelKind::encoder, tied);
    const LabelledText text =
        run.task->read_line(tsv_row(tied ? "bank" : "money\t1\tbank bank grows"));
    const LossGradients found = loss_gradients(run, text);
    Context context;
    const Scores scores = run.task->scores(*run.network, text.sentence, text.index, context);
    const auto logits = scores.logits.values();
    const auto answer =
        tied ? static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()) : 0;
    const Gradients expected =
        gradients_of(cross_entropy(reshape(scores.logits, {1, -1}), Indices({answer}, {1})));
    REQUIRE(found.parameters.size() == run.parameters.size());
    for (std::size_t i = 0; i < run.parameters.size(); ++i) {
      CAPTURE(run.parameters[i].path);
      CHECK(found.parameters[i].first == run.parameters[i].path);
      const Tensor difference =
          found.parameters[i].second - expected.of(*run.parameters[i].parameter);
      CHECK(statistics(difference).norm < 1e-12);
    }
  }
}

TEST_CASE("a word that occurs twice has a gradient for each place") {
  Run run = small_run(ModelKind::encoder);
  const auto words =
      loss_gradients(run, run.task->read_line(tsv_row("river\t1\tmoney bank money"))).words;
  CHECK(words[0] != words[2]);
  CHECK(words[2] > 0);
}

TEST_CASE(
    "without a label the loss is that of the model's own answer, also with a tied output layer") {
  Run run = small_run(ModelKind::encoder);
  const std::string line = "money bank grows";
  const double own = loss_gradients(run, run.task->read_line(tsv_row(line))).loss;
  const double money = loss_gradients(run, run.task->read_line(tsv_row("money\t1\t" + line))).loss;
  const double river = loss_gradients(run, run.task->read_line(tsv_row("river\t1\t" + line))).loss;
  CHECK(own == std::min(money, river));
  Run tied = small_run(ModelKind::decoder, true);
  const LossGradients found = loss_gradients(tied, tied.task->read_line(tsv_row("bank")));
  CHECK(found.words.size() == 4);
  CHECK(found.parameters.size() == tied.parameters.size());
  CHECK(!tied.network->head);
}

TEST_CASE("means over texts go by distance from the word that is asked about") {
  Run run = small_run(ModelKind::encoder);
  const std::vector<LabelledText> texts = {
      run.task->read_line(tsv_row("money\t1\tmoney bank grows")),
      run.task->read_line(tsv_row("river\t1\triver bank"))};
  const LossGradients first = loss_gradients(run, texts[0]), second = loss_gradients(run, texts[1]);
  ReadCallback silent;
  const MeanGradients mean = mean_gradients(run, texts, silent);
  REQUIRE(mean.distances.size() == 3);
  CHECK(mean.distances[0].distance == -1);
  CHECK(mean.distances[0].texts == 1);
  CHECK(mean.distances[0].norm == first.words[2]);
  CHECK(mean.distances[2].norm == doctest::Approx((first.words[0] + second.words[0]) / 2));
  CHECK(mean.loss == doctest::Approx((first.loss + second.loss) / 2));
  const auto& [path, gradient] = mean.parameters.front();
  CHECK(path == "embedding.weight");
  const Tensor expected =
      0.5 * (first.parameters.front().second + second.parameters.front().second);
  CHECK(statistics(gradient - expected).norm < 1e-12);
}

TEST_CASE("a label that the model does not know is named") {
  Run run = small_run(ModelKind::encoder);
  LabelledText text = run.task->read_line(tsv_row("money bank"));
  text.label = "sea";
  CHECK(error_of<UserError>([&] { loss_gradients(run, text); }) ==
        "the model does not know the label sea");
}

TEST_CASE("the gradients of a written text are those of training on it") {
  for (const bool tied : {false, true}) {
    Config config;
    config.name = "pairs";
    config.task.kind = TaskKind::translate;
    config.task.train = QKV_SOURCE_DIR "/datasets/sequences/reverse/valid.tsv";
    config.model = {
        .kind = ModelKind::encoder_decoder, .width = 6, .layers = 1, .heads = 2, .feed_forward = 8};
    config.head.tied = tied;
    Run run = start_run(config);
    convert(*run.network, DType::float64);
    std::ifstream file(config.task.train);
    std::string source, target;
    std::getline(file, source, '\t');
    std::getline(file, target);
    LabelledText text{.text = source, .sentence = run.task->read(source)};
    text.sentence.written = run.task->write(*run.network, text.sentence, target);
    const LossGradients found = loss_gradients(run, text);

    const Index first[] = {0};
    Context context;
    const Tensor loss = run.task->loss(*run.network, first, context).value;
    CHECK(found.loss == doctest::Approx(loss.item()));
    const Gradients expected = gradients_of(loss);
    const auto named = parameters(*run.network);
    REQUIRE(found.parameters.size() == named.size());
    for (std::size_t i = 0; i < named.size(); ++i) {
      const Tensor difference = found.parameters[i].second - expected.of(*named[i].parameter);
      CHECK(found.parameters[i].first == named[i].path);
      CHECK(statistics(difference).norm < 1e-10);
    }
    CHECK(found.words.size() == text.sentence.ids.size());
    CHECK(found.inputs.size() == text.sentence.written->input_ids.size());
    for (const double norm : found.inputs) CHECK(norm > 0);
  }
}
