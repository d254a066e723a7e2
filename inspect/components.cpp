#include "inspect/components.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace qkv {
std::vector<std::pair<std::string, Transformer*>> stacks_of(Network& network) {
  return modules<Transformer>(network);
}

std::vector<ResidualState> residual_states(const Transformer& stack) {
  std::vector<ResidualState> states = {{"input", {&stack, "input"}}};
  for (const TransformerBlock& block : stack.layers)
    states.push_back({fmt::format("layer {}", states.size() - 1), {&block, "output"}});
  return states;
}

std::vector<Component> components(Network& network) {
  const auto stacks = stacks_of(network);
  const Index width = network.model->embedding_table().shape()[1];
  std::vector<Component> all;
  for (const auto& entry : stacks) {
    const std::string& name = entry.first;
    const bool several = stacks.size() > 1;
    Index layer = 0;
    const auto add = [&](ComponentKind kind, Index head, const std::string& id,
                         const std::string& label, Activation activation, Tensor mask) {
      all.push_back({kind, name, layer, head,
                     fmt::format("{}{}.{}", several ? name + "." : "", layer, id),
                     fmt::format("{}layer {}, {}", several ? name + ", " : "", layer, label),
                     activation, std::move(mask)});
    };
    const auto add_heads = [&](const MultiHeadAttention& attention) {
      const Index heads = attention.options.heads, head_width = width / heads;
      for (Index h = 0; h < heads; ++h)
        add(attention.cross ? ComponentKind::cross_head : ComponentKind::head, h,
            fmt::format("{}{}", attention.cross ? "cross." : "", h),
            fmt::format("{}head {}", attention.cross ? "cross-attention " : "", h),
            {&attention, "mixed"}, range_mask(h * head_width, (h + 1) * head_width, width));
    };
    for (const TransformerBlock& block : entry.second->layers) {
      add_heads(block.attention);
      if (block.cross_attention) add_heads(*block.cross_attention);
      if (block.feed_forward)
        add(ComponentKind::feed_forward, -1, "ff", "feed-forward", {&*block.feed_forward, "output"},
            range_mask(0, width, width));
      ++layer;
    }
  }
  return all;
}

const Component& component_of(const std::vector<Component>& components, std::string_view id) {
  const auto found = std::ranges::find(components, id, &Component::id);
  if (found != components.end()) return *found;
  std::vector<std::string_view> ids;
  ids.reserve(components.size());
  for (const Component& component : components) ids.push_back(component.id);
  throw UserError(fmt::format("the model has no component {}; it has {}", id, fmt::join(ids, " ")));
}

}  // namespace qkv
