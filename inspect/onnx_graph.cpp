#include "inspect/onnx_graph.h"

#include <algorithm>
#include <charconv>

namespace qkv::onnx_export {
namespace {

void set_type(onnx::ValueInfoProto& info, const std::string& name, onnx::TensorProto_DataType type,
              const std::vector<std::string>& axes) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const std::string& axis : axes) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    Index size = 0;
    const auto [end, error] = std::from_chars(axis.data(), axis.data() + axis.size(), size);
    if (error == std::errc())
      dimension.set_dim_value(size);
    else
      dimension.set_dim_param(axis);
  }
}

struct SetValue {
  onnx::AttributeProto& attribute;

  void operator()(Index value) const {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void operator()(double value) const {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }
  void operator()(const Integers& values) const {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const Index value : values) attribute.add_ints(value);
  }
};

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
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type("Identity");
  node.set_name(new_name("Identity"));
  node.add_input(value);
  node.add_output(name);
  set_type(*graph_.add_output(), name, onnx::TensorProto::FLOAT, axes);
}

Value Graph::op(const std::string& type, const std::vector<Value>& inputs,
                const std::vector<Attribute>& attributes) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type(type);
  node.set_name(new_name(type));
  for (const Value& input : inputs) node.add_input(input);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    std::visit(SetValue{attribute}, value);
  }
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
  stored.set_name(name.empty() ? new_name("constant") : name);
  stored.set_data_type(onnx::TensorProto::FLOAT);
  for (const Index size : values.shape()) stored.add_dims(size);
  const auto data = values.to(DType::float32);
  const auto bytes = std::as_bytes(data.data<float>());
  stored.set_raw_data(bytes.data(), bytes.size());
  return stored.name();
}

Value Graph::integers(const Integers& values, const Integers& shape) {
  onnx::TensorProto& stored = *graph_.add_initializer();
  stored.set_name(new_name("constant"));
  stored.set_data_type(onnx::TensorProto::INT64);
  for (const Index size : shape) stored.add_dims(size);
  const auto bytes = std::as_bytes(std::span(values));
  stored.set_raw_data(bytes.data(), bytes.size());
  return stored.name();
}

}  // namespace qkv::onnx_export
