#include "inspect/onnx_graph.h"

#include <onnx/defs/attr_proto_util.h>

#include <span>

namespace qkv::onnx_export {
namespace {

void set_type(onnx::ValueInfoProto& info, const std::string& name, onnx::TensorProto_DataType type,
              const std::vector<std::string>& axes) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const std::string& axis : axes) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    if (axis.front() >= '0' && axis.front() <= '9')
      dimension.set_dim_value(std::stoll(axis));
    else
      dimension.set_dim_param(axis);
  }
}

void store(onnx::TensorProto& stored, const std::string& name, onnx::TensorProto_DataType type,
           std::span<const Index> sizes, std::span<const std::byte> bytes) {
  stored.set_name(name);
  stored.set_data_type(type);
  for (const Index size : sizes) stored.add_dims(size);
  stored.set_raw_data(bytes.data(), bytes.size());
}

}  // namespace

std::string Graph::new_name(std::string_view of) {
  return fmt::format("{}_{}", of, counts_[std::string(of)]++);
}

Value Graph::input(const std::string& name, const std::vector<std::string>& axes) {
  set_type(*graph_.add_input(), name, onnx::TensorProto::INT64, axes);
  return name;
}

void Graph::output(const std::string& name, const Value& value,
                   const std::vector<std::string>& axes) {
  op("Identity", {value});
  graph_.mutable_node(graph_.node_size() - 1)->set_output(0, name);
  set_type(*graph_.add_output(), name, onnx::TensorProto::FLOAT, axes);
}

Value Graph::op(const std::string& type, const std::vector<Value>& inputs,
                const std::vector<Attribute>& attributes) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type(type);
  node.set_name(new_name(type));
  for (const Value& input : inputs) node.add_input(input);
  for (const Attribute& attribute : attributes)
    *node.add_attribute() =
        std::visit([&](const auto& value) { return onnx::MakeAttribute(attribute.name, value); },
                   attribute.value);
  node.add_output(node.name());
  return node.name();
}

Value Graph::parameter(const std::string& path) {
  const auto [found, is_new] = stored_.try_emplace(path);
  if (is_new) found->second = tensor(parameters_.at(path), path);
  return found->second;
}

Value Graph::tensor(const Tensor& values, const std::string& name) {
  onnx::TensorProto& stored = *graph_.add_initializer();
  const auto data = values.to(DType::float32);
  store(stored, name.empty() ? new_name("constant") : name, onnx::TensorProto::FLOAT,
        {values.shape().begin(), values.shape().end()}, std::as_bytes(data.data<float>()));
  return stored.name();
}

Value Graph::integers(const Integers& values, const Integers& shape) {
  onnx::TensorProto& stored = *graph_.add_initializer();
  store(stored, new_name("constant"), onnx::TensorProto::INT64, shape,
        std::as_bytes(std::span(values)));
  return stored.name();
}

}  // namespace qkv::onnx_export
