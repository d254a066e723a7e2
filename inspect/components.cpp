#include "inspect/components.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace qkv {
namespace {

/// Names and collects the components of one stack.
class StackComponents {
 public:
  /// `several`: names tell which stack it is.
  StackComponents(std::string stack, bool several, Index width)
      : stack_(std::move(stack)), several_(several), width_(width) {}

  void add_heads(const MultiHeadAttention& attention, Index layer) {
    const ComponentKind kind = attention.cross ? ComponentKind::cross_head : ComponentKind::head;
    const Index heads = attention.options.heads, head_width = width_ / heads;
    for (Index h = 0; h < heads; ++h)
      add(kind, layer, h, fmt::format("{}{}", attention.cross ? "cross." : "", h),
          fmt::format("{}head {}", attention.cross ? "cross-attention " : "", h),
          {&attention, "mixed"}, range_mask(h * head_width, (h + 1) * head_width, width_));
  }
  void add_feed_forward(const FeedForward& feed_forward, Index layer) {
    add(ComponentKind::feed_forward, layer, -1, "ff", "feed-forward", {&feed_forward, "output"},
        range_mask(0, width_, width_));
  }

  std::vector<Component> found;

 private:
  void add(ComponentKind kind, Index layer, Index head, const std::string& id,
           const std::string& label, Activation activation, Tensor mask) {
    found.push_back({kind, stack_, layer, head,
                     fmt::format("{}{}.{}", several_ ? stack_ + "." : "", layer, id),
                     fmt::format("{}layer {}, {}", several_ ? stack_ + ", " : "", layer, label),
                     activation, std::move(mask)});
  }

  std::string stack_;
  bool several_;
  Index width_;
};

}  // namespace

std::vector<std::pair<std::string, Transformer*>> stacks_of(Network& network) {
  return modules<Transformer>(network);
}

std::vector<ResidualState> residual_states(const Transformer& stack) {
  std::vector<ResidualState> states = {{"input", {&stack, "input"}}};
  for (const TransformerBlock& block : stack.layers)
    states.push_back({fmt::format("layer {}", states.size() - 1), {&block, "output"}});
  return states;
}

Activation scored_activation(const Network& network, const Sentence& sentence) {
  return {network.model.get(), sentence.written ? "decoded" : "contextual"};
}

std::vector<Component> components(Network& network) {
  const auto stacks = stacks_of(network);
  std::vector<Component> all;
  for (const auto& [name, stack] : stacks) {
    StackComponents components(name, stacks.size() > 1,
                               network.model->embedding_table().shape()[1]);
    for (Index layer = 0; layer < std::ssize(stack->layers); ++layer) {
      const TransformerBlock& block = stack->layers[static_cast<std::size_t>(layer)];
      components.add_heads(block.attention, layer);
      if (block.cross_attention) components.add_heads(*block.cross_attention, layer);
      if (block.feed_forward) components.add_feed_forward(*block.feed_forward, layer);
    }
    std::ranges::move(components.found, std::back_inserter(all));
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
