#include "inspect/documents/json.h"

namespace qkv {

Json object(std::initializer_list<Member> members) {
  Json json = Json::object();
  for (const auto& [key, value] : members) json[key] = std::move(value);
  return json;
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Tensor& tensor) {
  const auto values = tensor.values();
  auto next = values.begin();
  const auto nested = [&](const auto& self, int axis) -> Json {
    if (axis == tensor.rank()) return *next++;
    Json array = Json::array();
    for (Index i = 0; i < tensor.dim(axis); ++i) array.push_back(self(self, axis + 1));
    return array;
  };
  return nested(nested, 0);
}

Json shapes_of(Network& network) {
  Json list = Json::array();
  for (const auto& [path, parameter] : parameters(network)) {
    const Shape& shape = parameter->shape();
    list.push_back(
        object({{"path", path}, {"shape", std::vector<Index>(shape.begin(), shape.end())}}));
  }
  return list;
}

Json to_json(const Component& component) {
  static constexpr std::string_view kinds[] = {"head", "cross-head", "feed-forward"};
  Json json = object({{"id", component.id},
                      {"label", component.label},
                      {"stack", component.stack},
                      {"layer", component.layer},
                      {"kind", kinds[static_cast<std::size_t>(component.kind)]}});
  if (component.head >= 0) json["head"] = component.head;
  return json;
}

}  // namespace qkv
