#include "train/exchange/torch_names.h"

#include <doctest/doctest.h>

#include "layers/model.h"
#include "tests/support/errors.h"

using namespace qkv;

namespace {

Parameters parameters_of(const ModelOptions& options) {
  Random random(1, Purpose::testing);
  return state_of(*make_model(options, 7, random));
}

ModelOptions small(ModelKind kind) {
  return {.kind = kind, .width = 4, .layers = 2, .heads = 2, .feed_forward = 6};
}

std::vector<std::string> names_of(const Parameters& parameters, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters)
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  return names;
}

}  // namespace

TEST_CASE("the blocks of a transformer have PyTorch's names, each sub-layer its own norm") {
  const ModelOptions options = small(ModelKind::encoder_decoder);
  const Parameters named = to_torch_names(parameters_of(options), options);
  CHECK(names_of(named, "encoder.layers.1.") ==
        std::vector<std::string>{"linear1.bias", "linear1.weight", "linear2.bias", "linear2.weight",
                                 "norm1.bias", "norm1.weight", "norm2.bias", "norm2.weight",
                                 "self_attn.in_proj_bias", "self_attn.in_proj_weight",
                                 "self_attn.out_proj.bias", "self_attn.out_proj.weight"});
  CHECK(names_of(named, "decoder.layers.0.") ==
        std::vector<std::string>{"linear1.bias", "linear1.weight", "linear2.bias", "linear2.weight",
                                 "multihead_attn.in_proj_bias", "multihead_attn.in_proj_weight",
                                 "multihead_attn.out_proj.bias", "multihead_attn.out_proj.weight",
                                 "norm1.bias", "norm1.weight", "norm2.bias", "norm2.weight",
                                 "norm3.bias", "norm3.weight", "self_attn.in_proj_bias",
                                 "self_attn.in_proj_weight", "self_attn.out_proj.bias",
                                 "self_attn.out_proj.weight"});
  CHECK(names_of(named, "embedding.") == std::vector<std::string>{"weight"});
}

TEST_CASE("the weights of queries, keys and values are joined in this order") {
  const ModelOptions options = small(ModelKind::encoder);
  const Parameters parameters = parameters_of(options);
  const auto joined =
      to_torch_names(parameters, options).at("encoder.layers.0.self_attn.in_proj_weight").values();
  std::vector<double> expected;
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    const auto part =
        parameters.at(fmt::format("encoder.layers.0.attention.{}.weight", name)).values();
    expected.insert(expected.end(), part.begin(), part.end());
  }
  CHECK(joined == expected);
}

TEST_CASE("PyTorch's names and back give the same parameters, for every kind of model") {
  for (const ModelRow& row : model_kinds()) {
    if (row.value == ModelKind::bert) continue;  // it is refused
    CAPTURE(row.name);
    const ModelOptions options = small(row.value);
    const Parameters before = parameters_of(options);
    const Parameters after = from_torch_names(to_torch_names(before, options));
    REQUIRE(after.size() == before.size());
    for (const auto& [path, value] : before) {
      CAPTURE(path);
      REQUIRE(after.contains(path));
      CHECK(after.at(path).shape() == value.shape());
      CHECK(after.at(path).values() == value.values());
    }
  }
}

TEST_CASE("a model that PyTorch's transformers cannot be is refused with the option") {
  const auto error_with = [](auto change) {
    ModelOptions options = small(ModelKind::encoder);
    change(options);
    return error_of<UserError>([&] { to_torch_names(parameters_of(options), options); });
  };
  const auto refused = [](std::string_view option) {
    return fmt::format("PyTorch's transformers have no model of {}; leave --names torch out",
                       option);
  };
  CHECK(error_with([](ModelOptions& o) { o.attention = AttentionKind::uniform; }) ==
        refused("model.attention other than \"learned\""));
  CHECK(error_with([](ModelOptions& o) { o.position = PositionKind::rotary; }) ==
        refused("model.position = \"rotary\""));
  CHECK(error_with([](ModelOptions& o) { o.position = PositionKind::relative; }) ==
        refused("model.position = \"relative\""));
  CHECK(error_with([](ModelOptions& o) { o.kv_heads = 1; }) == refused("model.kv_heads"));
  CHECK(error_with([](ModelOptions& o) { o.scale = false; }) == refused("model.scale = false"));
  CHECK(error_with([](ModelOptions& o) { o.norm = NormKind::none; }) ==
        refused("model.norm = \"none\""));
  CHECK(error_with([](ModelOptions& o) { o.feed_forward = 0; }) ==
        refused("model.feed_forward = 0"));
  CHECK(error_with([](ModelOptions& o) { o.kind = ModelKind::bert; }) ==
        refused("model.kind = \"bert\""));
}

TEST_CASE("joined weights that cannot be parted are refused with their shape") {
  CHECK(error_of<UserError>([] {
          from_torch_names({{"encoder.layers.0.self_attn.in_proj_weight", Tensor::zeros({4, 4})}});
        }) ==
        "encoder.layers.0.self_attn.in_proj_weight has the shape (4, 4); it must hold as many "
        "rows for queries, keys and values");
}
