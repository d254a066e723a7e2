#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "inspect/components.h"

/// The JSON of what the program finds out about models. A document is a function of a loaded model,
/// so that commands and the page's engine give the same.
namespace qkv {

using Json = nlohmann::ordered_json;

/// An object with members in this order. It compiles faster than a list of nlohmann, which
/// instantiates templates for each length of a key.
struct Member {
  const char* key;
  mutable Json value;  ///< `object` moves it
};
Json object(std::initializer_list<Member> members);

/// JSON as text, on one line or indented by a number of spaces. Bytes that are no UTF-8 are
/// replaced.
std::string text_of(const Json& json, int indent = -1);

/// Nested arrays, one for each axis.
Json to_json(const Tensor& tensor);
/// [{"path", "shape"}] of a network's parameters in their order.
Json shapes_of(Network& network);
/// Which component it is.
Json to_json(const Component& component);

}  // namespace qkv
