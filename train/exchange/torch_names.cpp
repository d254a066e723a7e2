#include "train/exchange/torch_names.h"

#include <array>
#include <string_view>

#include "core/ops.h"
#include "layers/positions.h"

namespace qkv {
namespace {

struct Renaming {
  std::string_view ours, theirs;  ///< what a path in a block begins with
};

constexpr Renaming in_every_block[] = {{"attention.w_o.", "self_attn.out_proj."},
                                       {"cross_attention.w_o.", "multihead_attn.out_proj."},
                                       {"norm_1.", "norm1."},
                                       {"norm_cross.", "norm2."},
                                       {"feed_forward.w_1.", "linear1."},
                                       {"feed_forward.w_2.", "linear2."}};
/// The norm of the feed-forward network is the second of a block or, after cross-attention, the
/// third.
constexpr Renaming norm_2 = {"norm_2.", "norm2."}, norm_2_after_cross = {"norm_2.", "norm3."};
constexpr Renaming attentions[] = {{"attention.", "self_attn.in_proj_"},
                                   {"cross_attention.", "multihead_attn.in_proj_"}};
constexpr std::string_view projections[] = {"w_q.", "w_k.", "w_v."};

/// "encoder.layers.0.norm_1.weight" in two parts: "encoder.layers.0." and "norm_1.weight".
struct PathInBlock {
  std::string block, rest;  ///< no rest: it is outside of blocks
};

PathInBlock in_block(const std::string& path) {
  constexpr std::string_view list = ".layers.";
  const std::size_t begin = path.find(list);
  if (begin == path.npos || path.starts_with("convolution.")) return {path, ""};
  const std::size_t end = path.find('.', begin + list.size());
  return {path.substr(0, end + 1), path.substr(end + 1)};
}

/// `rest` with a beginning replaced; empty when it has another beginning.
std::string replaced(const std::string& rest, std::string_view from, std::string_view to) {
  return rest.starts_with(from) ? std::string(to) + rest.substr(from.size()) : "";
}

/// The name that `side` of a table's rows gives to what the other side calls `rest`.
std::string renamed(const std::string& rest, bool has_cross, std::string_view Renaming::*from,
                    std::string_view Renaming::*to) {
  const Renaming& norm = has_cross ? norm_2_after_cross : norm_2;
  if (const std::string name = replaced(rest, norm.*from, norm.*to); !name.empty()) return name;
  for (const Renaming& row : in_every_block)
    if (const std::string name = replaced(rest, row.*from, row.*to); !name.empty()) return name;
  return "";
}

void require_representable(const ModelOptions& model) {
  const auto refuse = [](bool wrong, std::string_view option) {
    require<UserError>(
        !wrong, "PyTorch's transformers have no model of {}; leave --names torch out", option);
  };
  refuse(model.attention != AttentionKind::learned, "model.attention other than \"learned\"");
  const PositionRow& position = row_of(position_kinds(), model.position);
  refuse(position.attention, fmt::format("model.position = \"{}\"", position.name));
  refuse(model.kv_heads != 0 && model.kv_heads != model.heads, "model.kv_heads");
  refuse(!model.scale, "model.scale = false");
  refuse(model.norm == NormKind::none, "model.norm = \"none\"");
  refuse(model.feed_forward == 0, "model.feed_forward = 0");
  refuse(model.kind == ModelKind::bert, "model.kind = \"bert\"");
}

}  // namespace

Parameters to_torch_names(const Parameters& parameters, const ModelOptions& model) {
  if (!is_transformer(model.kind)) return parameters;
  require_representable(model);
  Parameters named;
  for (const auto& [path, value] : parameters) {
    const auto [block, rest] = in_block(path);
    if (rest.empty()) {
      named[path] = value;
      continue;
    }
    const bool has_cross = parameters.contains(block + "norm_cross.weight");
    if (const std::string name = renamed(rest, has_cross, &Renaming::ours, &Renaming::theirs);
        !name.empty()) {
      named[block + name] = value;
      continue;
    }
    for (const auto& [ours, theirs] : attentions) {
      const std::string query = std::string(ours) + std::string(projections[0]);
      if (!rest.starts_with(query)) continue;              // keys and values come with the queries
      const std::string kind = rest.substr(query.size());  // weight or bias
      std::vector<Tensor> parts;
      for (const std::string_view projection : projections)
        parts.push_back(parameters.at(fmt::format("{}{}{}{}", block, ours, projection, kind)));
      named[fmt::format("{}{}{}", block, theirs, kind)] = concatenate(parts, 0);
    }
  }
  return named;
}

Parameters from_torch_names(const Parameters& parameters) {
  Parameters named;
  for (const auto& [path, value] : parameters) {
    const auto [block, rest] = in_block(path);
    const bool has_cross = parameters.contains(block + "multihead_attn.in_proj_weight");
    const std::string name = renamed(rest, has_cross, &Renaming::theirs, &Renaming::ours);
    if (!name.empty()) {
      named[block + name] = value;
      continue;
    }
    bool joined = false;
    for (const auto& [ours, theirs] : attentions) {
      if (!rest.starts_with(theirs)) continue;
      joined = true;
      require<UserError>(value.rank() > 0 && value.dim(0) % 3 == 0,
                         "{} has the shape {}; it must hold as many rows for queries, keys and "
                         "values",
                         path, value.shape());
      const auto parts = split(value, 0, 3);
      for (std::size_t i = 0; i < parts.size(); ++i)
        named[fmt::format("{}{}{}{}", block, ours, projections[i], rest.substr(theirs.size()))] =
            parts[i];
    }
    if (!joined) named[path] = value;
  }
  return named;
}

}  // namespace qkv
