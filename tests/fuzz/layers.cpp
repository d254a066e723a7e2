#include <fmt/ranges.h>

#include <memory>

#include "core/parameter.h"
#include "layers/convolution.h"
#include "layers/recurrent.h"
#include "layers/transformer.h"
#include "tests/fuzz/families.h"
#include "tests/ops/formulas.h"

namespace qkv::fuzz {
namespace {

/// `forward(layer, inputs)` with the parameters that stand behind the inputs in `in`: one node of
/// the graph, whose backward walks the layer's own.
template <class L, class Forward>
Tensor applied(const std::shared_ptr<L>& layer, const In& in, Forward forward) {
  const std::vector<NamedParameter> named = parameters(*layer);
  const std::size_t inputs = in.size() - named.size();
  const auto own = std::make_shared<std::vector<Parameter>>();
  for (std::size_t i = 0; i < inputs; ++i) own->emplace_back(in[i].detach());
  for (std::size_t i = 0; i < named.size(); ++i)
    named[i].parameter->assign(in[inputs + i].detach());
  const Tensor y = forward(*layer, In(own->begin(), own->end()));
  return record("layer", y.detach(), in,
                [=, layer = layer](const Tensor& dy, InputGradients& gradients) {
                  const Gradients found = gradients_of(sum(y * dy));
                  for (std::size_t i = 0; i < inputs + named.size(); ++i) {
                    const Parameter& p = i < inputs ? (*own)[i] : *named[i - inputs].parameter;
                    if (found.has(p)) gradients.add(i, found.of(p));
                  }
                });
}

/// The oracle's parameters of a layer, or with a prefix of a part of it, by path.
struct Paths {
  std::map<std::string, const Array*> arrays;
  std::string prefix = {};

  const Array* find(const std::string& name) const {
    const auto found = arrays.find(prefix + name);
    return found == arrays.end() ? nullptr : found->second;
  }
  const Array& at(const std::string& name) const { return *arrays.at(prefix + name); }
  Paths of(const std::string& part) const { return {arrays, prefix + part + "."}; }
};

std::string list(std::size_t first, std::size_t end) {
  std::vector<std::string> names;
  for (std::size_t i = first; i < end; ++i) names.push_back(fmt::format("${}", i));
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

/// Adds a layer's call: `make()` gives the layer, `options` is the code of what it is made of.
template <class Make, class Forward, class Oracle>
void add_layer(Builder& b, const std::string& name, const std::vector<Shape>& inputs,
               const std::string& options, Make make, Forward forward, Oracle oracle) {
  std::vector<std::size_t> operands;
  for (const Shape& shape : inputs) operands.push_back(b.within(shape, -2, 2));
  std::vector<std::string> paths;
  const auto layer = make();
  for (const auto& [path, parameter] : parameters(*layer)) {
    operands.push_back(b.within(parameter->shape(), -0.5, 0.5));
    paths.push_back(path);
  }
  const std::size_t count = inputs.size();
  b.add(name, operands,
        {fmt::format("{}({}, {}{})", name, list(0, count), list(count, operands.size()), options),
         [=](const In& in) { return applied(make(), in, forward); },
         [=](const Arrays& in) {
           Paths named;
           for (std::size_t i = 0; i < paths.size(); ++i) named.arrays[paths[i]] = &in[count + i];
           return oracle(in, named);
         }});
}

Array linear(const Array& x, const Paths& p) {
  return linear(x, p.at("weight"), p.find("bias"));
}

Array layer_norm(const Array& x, const Paths& p) {
  return layer_norm(x, p.at("weight"), p.find("bias"), 1e-5);
}

Scalar squared_relu(const Scalar& x) {
  const Scalar y = positive_part(x);
  return y * y;
}

Array feed_forward(const Array& x, const Paths& p, Scalar (*activation)(const Scalar&) = gelu) {
  return linear(map(activation, linear(x, p.of("w_1"))), p.of("w_2"));
}

/// Each head of x [B, T, own d] as often as it takes to give `heads`.
Array shared_heads(Array x, std::size_t own, std::size_t heads) {
  const std::size_t batch = x.shape(0), time = x.shape(1), width = x.shape(2) / own;
  x.reshape({batch, time, own, std::size_t{1}, width});
  Array y = xt::broadcast(x, Sizes{batch, time, own, heads / own, width});
  y.reshape({batch, time, heads * width});
  return y;
}

Array multi_head_attention(const Array& query, const Array& memory, const Paths& p,
                           const AttentionMask& mask, const ModelOptions& o, bool cross = false) {
  AttentionOptions options{.heads = o.attention == AttentionKind::parameter_free ? 1 : o.heads};
  const auto heads = static_cast<std::size_t>(options.heads),
             kv_heads = o.kv_heads && heads > 1 ? static_cast<std::size_t>(o.kv_heads) : heads;
  if (o.scale) options.scale = 1 / std::sqrt(static_cast<double>(o.width / options.heads));
  if (o.attention == AttentionKind::uniform) options.scale = 0;
  const auto projected = [&](const Array& x, const std::string& name, std::size_t own, bool turns) {
    const bool learned = p.find(name + ".weight");
    Array y = learned ? linear(x, p.of(name)) : x;
    if (turns && !cross && o.position == PositionKind::rotary) y = rotary(y, learned ? own : heads);
    return learned && own != heads ? shared_heads(y, own, heads) : y;
  };
  const Array mixed =
      attention(projected(query, "w_q", heads, true), projected(memory, "w_k", kv_heads, true),
                projected(memory, "w_v", kv_heads, false), mask, options);
  return projected(mixed, "w_o", heads, false);
}

/// memory: of cross-attention, or null.
Array transformer_block(const Array& x, const Array* memory, const Indices& memory_lengths,
                        const Paths& p, const AttentionMask& mask, const ModelOptions& o) {
  if (o.attention == AttentionKind::parameter_free) return multi_head_attention(x, x, p, mask, o);
  const auto added = [&](const Array& from, const Paths& norm, auto part) {
    const bool post = o.norm == NormKind::post;
    const Array y = from + part(post ? from : layer_norm(from, norm));
    return post ? layer_norm(y, norm) : y;
  };
  Array y = added(x, p.of("norm_1"), [&](const Array& h) {
    return multi_head_attention(h, h, p.of("attention"), mask, o);
  });
  if (memory)
    y = added(y, p.of("norm_cross"), [&](const Array& h) {
      return multi_head_attention(h, *memory, p.of("cross_attention"), {memory_lengths}, o, true);
    });
  if (o.feed_forward == 0) return y;
  return added(y, p.of("norm_2"),
               [&](const Array& h) { return feed_forward(h, p.of("feed_forward")); });
}

/// kernels.i of x, of which rows are zeros at and after the lengths.
Array convolved(const Array& x, const Paths& p, const Indices& lengths) {
  const std::size_t batch = x.shape(0), time = x.shape(1);
  Arrays parts;
  for (int i = 0; i < 3; ++i) {
    const Paths kernel = p.of(fmt::format("kernels.{}", i));
    const Array& weight = kernel.at("weight");
    const std::size_t reach = weight.shape(2), before = (reach - 1) / 2;
    Array padded(Sizes{batch, time + reach - 1, x.shape(2)}, zero(dtype_of(weight)));
    for (std::size_t n = 0; n < batch; ++n) {
      const auto length = lengths.size() ? static_cast<std::size_t>(lengths.data()[n]) : time;
      xt::view(padded, n, xt::range(before, before + length)) =
          xt::view(x, n, xt::range(std::size_t{0}, length));
    }
    parts.push_back(map(positive_part, conv1d(padded, weight, kernel.find("bias"), {})));
  }
  return concatenated(parts, 2);
}

void draw_linear(Builder& b) {
  const Index in = b.positive(33), out = b.positive(33);
  const bool bias = b.draw.chance(70);
  add_layer(
      b, "Linear", {{b.size(9), in}}, "", [=] { return std::make_shared<Linear>(in, out, bias); },
      [](const Linear& layer, const In& x) { return layer(x[0]); },
      [](const Arrays& x, const Paths& p) { return linear(x[0], p); });
}

void draw_layer_norm(Builder& b) {
  const Index width = std::max<Index>(4, b.size(65));  // the op's row has narrower ones
  const bool bias = b.draw.chance(70);
  add_layer(
      b, "LayerNorm", {{b.size(9), width}}, "",
      [=] { return std::make_shared<LayerNorm>(width, bias); },
      [](const LayerNorm& layer, const In& x) { return layer(x[0]); },
      [](const Arrays& x, const Paths& p) { return layer_norm(x[0], p); });
}

void draw_rms_norm(Builder& b) {
  const Index width = std::max<Index>(4, b.size(65));  // the op's row has narrower ones
  add_layer(
      b, "RmsNorm", {{b.size(9), width}}, "", [=] { return std::make_shared<RmsNorm>(width); },
      [](const RmsNorm& layer, const In& x) { return layer(x[0]); },
      [](const Arrays& x, const Paths& p) { return rms_norm(x[0], p.at("weight"), 1e-5); });
}

void draw_swiglu(Builder& b) {
  const Index width = b.positive(17), hidden = b.positive(33);
  const bool bias = b.draw.chance(30);
  add_layer(
      b, "SwiGlu", {{b.size(3), b.size(5), width}}, "",
      [=] { return std::make_shared<SwiGlu>(width, hidden, bias); },
      [](const SwiGlu& layer, const In& x) { return layer(x[0]); },
      [](const Arrays& x, const Paths& p) {
        const Array gated = map(silu, linear(x[0], p.of("w_1"))) * linear(x[0], p.of("w_3"));
        return linear(gated, p.of("w_2"));
      });
}

void draw_feed_forward(Builder& b) {
  struct Row {
    ActivationKind kind;
    const char* code;
    Scalar (*oracle)(const Scalar&);
  };
  const Row row = b.draw.pick<Row>({{ActivationKind::gelu_tanh, "gelu_tanh", gelu},
                                    {ActivationKind::relu, "relu", positive_part},
                                    {ActivationKind::relu_squared, "relu_squared", squared_relu}});
  const Index width = b.positive(17), hidden = b.positive(33);
  const bool bias = b.draw.chance(70);
  add_layer(
      b, "FeedForward", {{b.size(3), b.size(5), width}},
      fmt::format(", ActivationKind::{}", row.code),
      [=] { return std::make_shared<FeedForward>(width, hidden, bias, row.kind); },
      [](const FeedForward& layer, const In& x) { return layer(x[0]); },
      [=](const Arrays& x, const Paths& p) { return feed_forward(x[0], p, row.oracle); });
}

ModelOptions draw_options(Builder& b) {
  ModelOptions o;
  o.heads = b.draw.pick<Index>({1, 2, 3, 4});
  o.position = b.draw.pick({PositionKind::none, PositionKind::rotary});
  o.width = o.heads * (o.position == PositionKind::rotary ? 2 * b.positive(4) : b.positive(9));
  o.kv_heads = b.draw.pick<Index>({0, 1, o.heads % 2 ? o.heads : o.heads / 2});
  o.attention = b.draw.pick({AttentionKind::learned, AttentionKind::learned, AttentionKind::uniform,
                             AttentionKind::parameter_free});
  o.scale = !b.draw.chance(20);
  o.feed_forward = b.size(33);
  o.norm = b.draw.pick({NormKind::pre, NormKind::post});
  o.bias = b.draw.chance(70);
  return o;
}

std::string code_of(const AttentionMask& mask, const ModelOptions& o) {
  constexpr const char* kinds[] = {"learned", "parameter_free", "uniform"};
  return fmt::format(
      ", {{{}, {}}}, {{.width = {}, .heads = {}, .kv_heads = {}, .attention = AttentionKind::{}, "
      ".scale = {}, .position = PositionKind::{}, .feed_forward = {}, .norm = NormKind::{}, "
      ".bias = {}}}",
      mask.key_lengths.size() ? text(mask.key_lengths) : "{}", text(mask.causal), o.width, o.heads,
      o.kv_heads, kinds[static_cast<int>(o.attention)], text(o.scale),
      o.position == PositionKind::rotary ? "rotary" : "none", o.feed_forward,
      o.norm == NormKind::pre ? "pre" : "post", text(o.bias));
}

AttentionMask draw_mask(Builder& b, Index batch, Index keys) {
  AttentionMask mask;
  mask.causal = b.draw.chance(50);
  if (b.draw.chance(50)) mask.key_lengths = b.indices({batch}, keys + 1);
  return mask;
}

void draw_multi_head_attention(Builder& b) {
  const ModelOptions o = draw_options(b);
  const Index batch = b.size(3), queries = b.size(9), keys = b.size(9);
  const AttentionMask mask = draw_mask(b, batch, keys);
  const bool cross = b.draw.chance(30);
  add_layer(
      b, "MultiHeadAttention", {{batch, queries, o.width}, {batch, keys, o.width}},
      code_of(mask, o) + ", " + text(cross),
      [=] { return std::make_shared<MultiHeadAttention>(o, cross); },
      [=](const MultiHeadAttention& layer, const In& x) {
        Context context;
        return layer(x[0], x[1], mask, context);
      },
      [=](const Arrays& x, const Paths& p) {
        return multi_head_attention(x[0], x[1], p, mask, o, cross);
      });
}

void draw_transformer_block(Builder& b) {
  const ModelOptions o = draw_options(b);
  const Index batch = b.size(3), time = b.size(9);
  const AttentionMask mask = draw_mask(b, batch, time);
  std::vector<Shape> inputs = {{batch, time, o.width}};
  const bool cross = o.attention != AttentionKind::parameter_free && b.draw.chance(40);
  Indices lengths;
  if (cross) {
    const Index keys = b.size(9);
    inputs.push_back({batch, keys, o.width});
    if (b.draw.chance(60)) lengths = b.indices({batch}, keys + 1);
  }
  add_layer(
      b, "TransformerBlock", inputs,
      fmt::format("{}, {}", code_of(mask, o), lengths.size() ? text(lengths) : "{}"),
      [=] { return std::make_shared<TransformerBlock>(o, cross); },
      [=](const TransformerBlock& layer, const In& x) {
        Context context;
        return layer(x[0], {mask, cross ? x[1] : Tensor(), lengths}, context);
      },
      [=](const Arrays& x, const Paths& p) {
        return transformer_block(x[0], cross ? &x[1] : nullptr, lengths, p, mask, o);
      });
}

void draw_recurrent(Builder& b) {
  ModelOptions o;
  o.cell = b.draw.pick({CellKind::rnn, CellKind::gru, CellKind::lstm});
  o.layers = 1 + b.draw.index_below(2);
  o.bidirectional = b.draw.chance(50);
  o.width = b.positive(9) * (o.bidirectional ? 2 : 1);
  const Index batch = b.size(5), time = b.positive(7);
  const Indices lengths = b.draw.chance(60) ? b.indices({batch}, time + 1) : Indices();
  constexpr const char* cells[] = {"rnn", "gru", "lstm"};
  add_layer(
      b, "Recurrent", {{batch, time, o.width}},
      fmt::format(", {}, {{.layers = {}, .cell = CellKind::{}, .bidirectional = {}}}",
                  lengths.size() ? text(lengths) : "{}", o.layers, cells[static_cast<int>(o.cell)],
                  text(o.bidirectional)),
      [=] { return std::make_shared<Recurrent>(o); },
      [=](const Recurrent& layer, const In& x) {
        Context context;
        return layer(x[0], lengths, context);
      },
      [=](const Arrays& x, const Paths& p) {
        Array y = x[0];
        for (Index i = 0; i < o.layers; ++i) {
          Arrays directions;
          for (const std::string reverse : {"", "_reverse"}) {
            if (!reverse.empty() && !o.bidirectional) continue;
            const std::string suffix = fmt::format("_l{}{}", i, reverse);
            directions.push_back(
                recurrent(o.cell,
                          {y, p.at("weight_ih" + suffix), p.at("weight_hh" + suffix),
                           p.at("bias_ih" + suffix), p.at("bias_hh" + suffix)},
                          lengths, !reverse.empty()));
          }
          y = concatenated(directions, 2);
        }
        return y;
      });
}

void draw_convolution(Builder& b) {
  const Index width = std::max<Index>(3, b.size(13)), batch = b.size(3), time = b.positive(9);
  const Indices lengths = b.draw.chance(60) ? b.indices({batch}, time + 1) : Indices();
  add_layer(
      b, "ConvolutionLayer", {{batch, time, width}},
      fmt::format(", {}", lengths.size() ? text(lengths) : "{}"),
      [=] { return std::make_shared<ConvolutionLayer>(width); },
      [=](const ConvolutionLayer& layer, const In& x) { return layer(x[0], lengths); },
      [=](const Arrays& x, const Paths& p) { return convolved(x[0], p, lengths); });
}

}  // namespace

const std::map<std::string, OpDraw>& module_draws() {
  static const std::map<std::string, OpDraw> draws = {
      {"Linear", draw_linear},
      {"LayerNorm", draw_layer_norm},
      {"RmsNorm", draw_rms_norm},
      {"SwiGlu", draw_swiglu},
      {"FeedForward", draw_feed_forward},
      {"MultiHeadAttention", draw_multi_head_attention},
      {"TransformerBlock", draw_transformer_block},
      {"Recurrent", draw_recurrent},
      {"ConvolutionLayer", draw_convolution},
  };
  return draws;
}

}  // namespace qkv::fuzz
