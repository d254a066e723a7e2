#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspect/intervention.h"
#include "layers/transformer.h"
#include "train/tasks/task.h"

namespace qkv {

enum class ComponentKind { head, cross_head, feed_forward };

/// A part of a transformer block that adds to the residual stream (Elhage et al. 2021, "A
/// Mathematical Framework for Transformer Circuits"): a head or a feed-forward block. Layers and
/// heads count from 0.
struct Component {
  ComponentKind kind;
  std::string stack;  ///< "encoder" or "decoder"
  Index layer;
  Index head;             ///< -1: a feed-forward block
  std::string id;         ///< "0.1", "0.ff"; where there are two stacks, "decoder.0.cross.1"
  std::string label;      ///< "layer 0, head 1"; "decoder, layer 0, cross-attention head 1"
  Activation activation;  ///< of which it is the columns where `mask` is 1
  Tensor mask;            ///< [D]
};

/// The stacks of blocks of a network, by name; none for other kinds of models.
std::vector<std::pair<std::string, Transformer*>> stacks_of(Network& network);

/// The residual stream before the first block ("input") or after a block ("layer 0").
struct ResidualState {
  std::string label;
  Activation activation;
};
/// The L + 1 states of a stack of L blocks.
std::vector<ResidualState> residual_states(const Transformer& stack);

/// In the order of computing.
std::vector<Component> components(Network& network);

/// The component of this id. Throws UserError listing the ids when there is none.
const Component& component_of(const std::vector<Component>& components, std::string_view id);

}  // namespace qkv
