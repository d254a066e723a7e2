#include <cmath>

#include "layers/positions.h"
#include "tests/support/modules.h"

namespace qkv::tests {
namespace {

struct Kind {
  std::string name;
  ModelOptions options;
};

/// Every kind of model with what changes how it reads a sequence.
std::vector<Kind> kinds() {
  std::vector<Kind> all;
  const auto add = [&](const std::string& name, ModelKind kind, auto change) {
    ModelOptions options{
        .kind = kind, .width = 12, .layers = 2, .heads = 2, .feed_forward = 9, .max_length = 40};
    change(options);
    all.push_back({name, options});
  };
  for (const PositionRow& row : position_kinds())
    for (const ModelKind kind :
         {ModelKind::encoder, ModelKind::decoder, ModelKind::encoder_decoder})
      add(fmt::format("{} {}", static_cast<int>(kind), row.name), kind,
          [&](ModelOptions& options) { options.position = row.value; });
  for (const auto& [name, attention] : {std::pair("parameter-free", AttentionKind::parameter_free),
                                        std::pair("uniform", AttentionKind::uniform)})
    add(name, ModelKind::encoder, [attention](ModelOptions& options) {
      options.attention = attention;
      options.heads = 1;
      options.scale = false;
      options.position = PositionKind::none;
    });
  for (const auto& [name, cell] : {std::pair("rnn", CellKind::rnn), std::pair("gru", CellKind::gru),
                                   std::pair("lstm", CellKind::lstm)})
    for (const bool both : {false, true})
      add(name, ModelKind::recurrent, [cell, both](ModelOptions& options) {
        options.cell = cell;
        options.bidirectional = both;
      });
  add("convolution", ModelKind::convolution, [](ModelOptions&) {});
  add("fixed length", ModelKind::fixed_length, [](ModelOptions&) {});
  add("static", ModelKind::static_embedding, [](ModelOptions&) {});
  add("grouped heads, norms after", ModelKind::decoder, [](ModelOptions& options) {
    options.heads = 4;
    options.kv_heads = 2;
    options.norm = NormKind::post;
  });
  return all;
}

bool attends(const ModelOptions& options) {
  return options.attention == AttentionKind::learned &&
         (options.kind == ModelKind::encoder || options.kind == ModelKind::decoder ||
          options.kind == ModelKind::encoder_decoder);
}

constexpr Index vocabulary = 11;

/// A model with drawn heads, whose width is around those of vectors.
std::unique_ptr<Model> model_of(ModelOptions options, Index seed) {
  Random random(static_cast<std::uint64_t>(seed), Purpose::testing);
  if (attends(options) && !options.kv_heads) {
    constexpr std::array<Index, 6> widths = {2, 4, 6, 8, 16, 18};
    options.heads = 1 + random.bits(0) % 3;
    options.width = options.heads * widths[random.bits(1) % widths.size()];
  }
  return make_model(options, vocabulary, random);
}

/// Token ids [batch, time].
std::vector<std::int32_t> tokens(Index count, Index seed) {
  const Random random(static_cast<std::uint64_t>(seed), Purpose::testing, 1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>(random.bits(i) % vocabulary);
  return ids;
}

/// Lengths in [1, time], of which the first is the largest.
std::vector<std::int32_t> lengths_below(Index batch, Index time) {
  const Random random(static_cast<std::uint64_t>(time), Purpose::testing, 2);
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = static_cast<std::int32_t>(1 + random.bits(i) % static_cast<std::uint32_t>(time));
  lengths[0] = static_cast<std::int32_t>(time);
  return lengths;
}

using Values = std::vector<double>;

/// The outputs of a model for a batch: the vectors of its tokens (an encoder-decoder's are those it
/// decodes for the same tokens), then those of its sentences.
struct Read {
  Tensor tokens, sentences;

  Read(const Model& model, const ModelOptions& options, const Indices& ids,
       const Indices& lengths) {
    Context context;
    const Tensor x = model(ids, lengths, context);
    sentences = model.sentence(x, lengths);
    tokens =
        options.kind == ModelKind::encoder_decoder ? model.decode(ids, x, lengths, context) : x;
  }
  Values rows(Index sentence, Index begin, Index end) const {
    return slice(slice(tokens, 0, sentence, sentence + 1), 1, begin, end).values();
  }
  Values sentence(Index i) const { return slice(sentences, 0, i, i + 1).values(); }
};

/// The largest difference between two lists, as a fraction of the largest value.
double difference(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::isnan(a[i] - b[i]) ? INFINITY : std::max(worst, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return worst / largest;
}

constexpr double rounding = 3e-5;  ///< float32, through two layers

/// Calls f(kind, model, time) for every kind of model and every length.
template <class F>
void for_each_length(F f) {
  for (const Kind& kind : kinds())
    for (Index time = 1; time <= 40; ++time) {
      CAPTURE(kind.name);
      CAPTURE(time);
      const auto model = model_of(kind.options, time);
      f(kind, *model, time);
    }
}

}  // namespace

TEST_CASE("what a model makes of a sentence does not depend on the rest of its batch") {
  for_each_length([](const Kind& kind, const Model& model, Index time) {
    const NoGrad no_grad;
    const Index batch = 2 + time % 8;
    const auto ids = tokens(batch * time, time), lengths = lengths_below(batch, time);
    const Read all(model, kind.options, Indices(ids, {batch, time}), Indices(lengths, {batch}));
    for (Index i = 0; i < batch; ++i) {
      const std::int32_t length = lengths[static_cast<std::size_t>(i)];
      const std::span<const std::int32_t> row(ids.data() + i * time,
                                              static_cast<std::size_t>(length));
      const Read alone(model, kind.options, Indices(row, {1, length}), Indices({length}, {1}));
      CHECK(difference(all.rows(i, 0, length), alone.rows(0, 0, length)) < rounding);
      CHECK(difference(all.sentence(i), alone.sentence(0)) < rounding);
    }
  });
}

TEST_CASE("every kind of model passes the gradient check in float64") {
  const Indices ids({1, 2, 3, 3, 6, 0}, {2, 3}), lengths({3, 2}, {2});
  std::vector<Kind> all = kinds();
  for (Kind& kind : all) {
    CAPTURE(kind.name);
    kind.options.width = 4;
    kind.options.feed_forward = kind.options.max_length = 3;
    Random random = fresh();
    const auto model = make_model(kind.options, 7, random);
    const GradientCheck check = checked(*model, [&] {
      const Read read(*model, kind.options, ids, lengths);
      return concatenate({read.tokens, reshape(read.sentences, {2, 1, -1})}, 1);
    });
    CAPTURE(check.parameter);
    CHECK(check.error < 1e-6);
  }
}

TEST_CASE("sentences in another order give the same vectors in that order") {
  for_each_length([](const Kind& kind, const Model& model, Index time) {
    const NoGrad no_grad;
    const Index batch = 2 + time % 8;
    const auto ids = tokens(batch * time, time), lengths = lengths_below(batch, time);
    std::vector<std::int32_t> other_ids, other_lengths(lengths.rbegin(), lengths.rend());
    for (Index i = batch; i-- > 0;)
      other_ids.insert(other_ids.end(), ids.begin() + i * time, ids.begin() + (i + 1) * time);
    const Read a(model, kind.options, Indices(ids, {batch, time}), Indices(lengths, {batch}));
    const Read b(model, kind.options, Indices(other_ids, {batch, time}),
                 Indices(other_lengths, {batch}));
    for (Index i = 0; i < batch; ++i) {
      const Index length = lengths[static_cast<std::size_t>(i)];
      CHECK(difference(a.rows(i, 0, length), b.rows(batch - 1 - i, 0, length)) < rounding);
      CHECK(difference(a.sentence(i), b.sentence(batch - 1 - i)) < rounding);
    }
  });
}

TEST_CASE("where only what came before counts, later tokens change nothing earlier") {
  for_each_length([](const Kind& kind, const Model& model, Index time) {
    const ModelOptions& options = kind.options;
    const bool one_way = options.kind == ModelKind::recurrent && !options.bidirectional;
    if (options.kind != ModelKind::decoder && options.kind != ModelKind::encoder_decoder &&
        !one_way)
      return;
    const NoGrad no_grad;
    const Index batch = 3;
    const auto ids = tokens(batch * time, time), lengths = lengths_below(batch, time);
    const Index from = time / 2;  // tokens from here on are others
    auto others = ids;
    for (std::size_t i = 0; i < others.size(); ++i)
      if (static_cast<Index>(i) % time >= from)
        others[i] = static_cast<std::int32_t>((others[i] + 1) % vocabulary);
    const Indices given(ids, {batch, time}), of(lengths, {batch});
    Context context;
    const auto read = [&](const std::vector<std::int32_t>& changed) {
      const Indices output(changed, {batch, time});
      return options.kind == ModelKind::encoder_decoder
                 ? model.decode(output, model(given, of, context), of, context)
                 : model(output, of, context);
    };
    const auto before = [&](const Tensor& x) { return slice(x, 1, 0, from).values(); };
    CHECK(difference(before(read(ids)), before(read(others))) == 0);
  });
}

TEST_CASE("a decoder that reads on with a cache gives the vectors of one that reads all at once") {
  for_each_length([](const Kind& kind, const Model& model, Index time) {
    const ModelOptions& options = kind.options;
    if (options.kind != ModelKind::decoder && options.kind != ModelKind::encoder_decoder) return;
    const NoGrad no_grad;
    const Index batch = 2;
    const Indices ids(tokens(batch * time, time), {batch, time});
    const Indices source(tokens(batch * 3, time + 100), {batch, 3}), source_lengths({3, 2}, {2});
    Context whole;
    const bool decodes = options.kind == ModelKind::encoder_decoder;
    const Tensor encoded = decodes ? model(source, source_lengths, whole) : Tensor();
    const auto read = [&](const Indices& part, Context& context) {
      return decodes ? model.decode(part, encoded, source_lengths, context)
                     : model(part, {}, context);
    };
    const Tensor expected = read(ids, whole);
    KeyValueCache cache;
    Context context({.cache = &cache});
    for (Index begin = 0, size = 1 + time / 2; begin < time; begin += size, size = 1) {
      std::vector<std::int32_t> part;
      for (Index i = 0; i < batch; ++i)
        for (Index t = begin; t < begin + size; ++t)
          part.push_back(ids.data()[static_cast<std::size_t>(i * time + t)]);
      const Tensor next = read(Indices(part, {batch, size}), context);
      CHECK(difference(slice(expected, 1, begin, begin + size).values(), next.values()) < rounding);
    }
    CHECK(cache.length() == time);
  });
}

TEST_CASE("without positions, tokens in another order give the same vectors in that order") {
  for_each_length([](const Kind& kind, const Model& model, Index time) {
    if (kind.options.kind != ModelKind::encoder || kind.options.position != PositionKind::none)
      return;
    const NoGrad no_grad;
    const auto ids = tokens(time, time);
    const std::vector<std::int32_t> reversed(ids.rbegin(), ids.rend());
    Context context;
    const Indices length({static_cast<std::int32_t>(time)}, {1});
    const Tensor a = model(Indices(ids, {1, time}), length, context),
                 b = model(Indices(reversed, {1, time}), length, context);
    for (Index t = 0; t < time; ++t)
      CHECK(difference(slice(a, 1, t, t + 1).values(),
                       slice(b, 1, time - 1 - t, time - t).values()) < rounding);
  });
}

}  // namespace qkv::tests
