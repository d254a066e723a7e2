#include "train/tasks/generate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "core/packed_weights.h"
#include "tests/support/modules.h"

using namespace qkv;

namespace {

constexpr std::array<double, 6> logits = {9, 8, 0.5, 2, 1, -3};  // the first two are reserved

Network small_decoder() {
  ModelOptions options;
  options.kind = ModelKind::decoder;
  options.width = 8;
  options.layers = 2;
  options.heads = 2;
  options.feed_forward = 16;
  options.max_length = 8;
  options.position = PositionKind::rotary;
  return Network(options, {}, 9, 9, Random(3, Purpose::initialisation));
}

/// The tokens that `generate` must write, by reading everything again for each.
std::vector<std::int32_t> without_cache(const Network& network, std::vector<std::int32_t> text,
                                        Index count) {
  const NoGrad no_grad;
  Context context;
  std::vector<std::int32_t> written;
  for (Index i = 0; i < count; ++i) {
    const Index time = std::ssize(text);
    const Tensor x = (*network.model)(Indices(text, {1, time}), {}, context);
    const auto scores = network.logits(slice(x, 1, time - 1, time)).values();
    text.push_back(sample(scores, {.temperature = 0}, 0));
    written.push_back(text.back());
  }
  return written;
}

std::vector<std::int32_t> generated(const Network& network, Index count, const Sampling& sampling) {
  std::vector<std::int32_t> written;
  generate(network, {4, 2, 5}, count, 8, sampling, [&](auto token) { written.push_back(token); });
  return written;
}

}  // namespace

TEST_CASE("the most probable token is drawn at temperature 0, among one and within a small top_p") {
  CHECK(sample(logits, {.temperature = 0}, 0) == 3);
  for (std::uint64_t i = 0; i < 50; ++i) {
    CHECK(sample(logits, {.top_k = 1}, i) == 3);
    CHECK(sample(logits, {.top_p = 0.3}, i) == 3);
  }
}

TEST_CASE("tokens are drawn as often as their probabilities say, reserved ones never") {
  std::array<int, 6> counts{};
  for (std::uint64_t i = 0; i < 4000; ++i)
    ++counts[static_cast<std::size_t>(sample(logits, {}, i))];
  CHECK(counts[0] + counts[1] == 0);
  CHECK(counts[3] == doctest::Approx(4000 * 0.6253).epsilon(0.05));
  CHECK(counts[4] == doctest::Approx(4000 * 0.2300).epsilon(0.1));
}

TEST_CASE(
    "top k draws as if all tokens but the first k by probability had none, equal ones by id") {
  std::mt19937_64 drawn(5);
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::vector<double> scores(3 + drawn() % 60);
    for (double& score : scores) score = static_cast<double>(drawn() % 7);
    std::vector<std::size_t> order(scores.size() - 2);
    std::iota(order.begin(), order.end(), 2);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](auto t) { return scores[t]; });
    const auto k = 1 + drawn() % (order.size() + 3);
    auto masked = scores;
    for (std::size_t rank = k; rank < order.size(); ++rank)
      masked[order[rank]] = -std::numeric_limits<double>::infinity();
    CHECK(sample(scores, {.top_k = static_cast<Index>(k)}, i) == sample(masked, {}, i));
    CHECK(sample(scores, {.temperature = 0}, i) == static_cast<std::int32_t>(order.front()));
  }
}

TEST_CASE("with nothing but reserved tokens nothing can be drawn") {
  CHECK_THROWS_AS(sample(std::span(logits).first(2), {}, 0), ValueError);
}

TEST_CASE("a cache of keys and values does not change what is written") {
  const Network network = small_decoder();
  CHECK(generated(network, 5, {.temperature = 0}) == without_cache(network, {4, 2, 5}, 5));
}

TEST_CASE("a text ends before a token that ends texts") {
  const Network network = small_decoder();
  const auto whole = generated(network, 10, {.temperature = 0});
  const auto end = std::ranges::find(whole, whole[4]);  // as greedy sampling repeats itself
  CHECK(generated(network, 10, {.temperature = 0, .ends = {1, whole[4]}}) ==
        std::vector(whole.begin(), end));
}

TEST_CASE("a vocabulary names what ends a text") {
  const Vocabulary vocabulary({"<pad>", "<unk>", "a", "</s>", " <eos>", "<|endoftext|>"});
  CHECK(end_of_text_tokens(vocabulary) == std::vector<std::int32_t>{5, 3, 4});
  CHECK(end_of_text_tokens(Vocabulary({"<pad>", "<unk>", "a"})).empty());
}

TEST_CASE("a text continues beyond the model's window, the same for equal seeds") {
  const Network network = small_decoder();
  const auto text = generated(network, 40, {.seed = 7});
  CHECK(text.size() == 40);
  CHECK(generated(network, 40, {.seed = 7}) == text);
  CHECK(generated(network, 40, {.seed = 8}) != text);
}

TEST_CASE("a full window starts again with its second half") {
  for (const Index window : {5, 8}) {
    CAPTURE(window);
    const ModelOptions options{.kind = ModelKind::decoder,
                               .width = 8,
                               .layers = 2,
                               .heads = 2,
                               .feed_forward = 16,
                               .max_length = window};
    Network network(options, {}, 9, 9, Random(3, Purpose::initialisation));
    tests::assign_normal(network);
    const NoGrad no_grad;
    std::vector<std::int32_t> text = {4, 2, 5};
    std::size_t begin = 0;
    for (std::uint64_t i = 0; i < 40; ++i) {
      if (std::ssize(text) - static_cast<Index>(begin) > window)
        begin = text.size() - static_cast<std::size_t>((window + 1) / 2);
      const std::vector<std::int32_t> read(text.begin() + static_cast<Index>(begin), text.end());
      const Index time = std::ssize(read);
      Context context;
      const Tensor x = (*network.model)(Indices(read, {1, time}), {}, context);
      const auto scores = network.logits(slice(x, 1, time - 1, time)).values();
      text.push_back(sample(scores, {.seed = 7}, i));
    }
    std::vector<std::int32_t> written;
    generate(network, {4, 2, 5}, 40, window, {.seed = 7},
             [&](auto token) { written.push_back(token); });
    CHECK(written == std::vector(text.begin() + 3, text.end()));
  }
}

TEST_CASE("prompts of a batch are continued as each alone, beyond the window and to their ends") {
  const Network network = small_decoder();
  std::mt19937_64 drawn(8);
  for (const std::size_t prompts : {1, 2, 5, 9}) {
    const std::size_t length = 1 + drawn() % 10;
    std::vector<std::vector<std::int32_t>> texts(prompts, std::vector<std::int32_t>(length));
    for (auto& text : texts)
      for (std::int32_t& token : text) token = static_cast<std::int32_t>(2 + drawn() % 7);
    const Sampling sampling{.seed = drawn(), .ends = {3}};
    std::vector<std::vector<std::int32_t>> written(prompts), alone(prompts);
    generate_batch(network, texts, 20, 8, sampling,
                   [&](std::size_t i, auto token) { written[i].push_back(token); });
    for (std::size_t i = 0; i < prompts; ++i)
      generate(network, texts[i], 20, 8, sampling, [&](auto token) { alone[i].push_back(token); });
    CHECK(written == alone);
  }
}

TEST_CASE("prompts of a batch have one length, and without prompts there is nothing to do") {
  const Network network = small_decoder();
  const auto none = [](std::size_t, std::int32_t) { FAIL("a token of no prompt"); };
  CHECK_THROWS_AS(generate_batch(network, {{2}, {3, 4}}, 1, 8, {}, none), ValueError);
  CHECK_THROWS_AS(generate_batch(network, {{}, {}}, 1, 8, {}, none), ValueError);
  generate_batch(network, {}, 1, 8, {}, none);
}

TEST_CASE("weights are packed while a text is generated, as the caller packs them if it does") {
  const Network network = small_decoder();
  const PackedWeights* used = nullptr;
  const auto look = [&](std::int32_t) { used = Execution::current().packed; };
  generate(network, {4}, 1, 8, {}, look);
  CHECK(used != nullptr);
  PackedWeights int8(WeightFormat::int8);
  const PackedWeights::Use use(int8);
  generate(network, {4}, 1, 8, {}, look);
  CHECK(used == &int8);
}

TEST_CASE("an empty prompt is refused") {
  const Network network = small_decoder();
  CHECK_THROWS_AS(generate(network, {}, 1, 8, {}, [](auto) {}), ValueError);
}
