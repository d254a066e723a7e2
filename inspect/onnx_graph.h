#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor.h"

namespace qkv::onnx_export {

/// The name of a value in a graph.
using Value = std::string;
using Integers = std::vector<Index>;

struct Attribute {
  std::string name;
  std::variant<Index, float, Integers, std::string> value;
};

/// Adds nodes to an ONNX graph, whose operators are those of
/// https://github.com/onnx/onnx/blob/main/docs/Operators.md.
class Graph {
 public:
  /// `parameters` become initializers when they are used.
  Graph(onnx::GraphProto& graph, const std::map<std::string, Tensor>& parameters)
      : graph_(graph), parameters_(parameters) {}

  /// Inputs of int64; axes are called by name, or have a size.
  Value input(const std::string& name, const std::vector<std::string>& axes);
  /// Makes a float32 value an output called `name`.
  void output(const std::string& name, const Value& value, const std::vector<std::string>& axes);

  Value op(const std::string& type, const std::vector<Value>& inputs,
           const std::vector<Attribute>& attributes = {});
  bool has(const std::string& path) const { return parameters_.contains(path); }
  const Tensor& tensor(const std::string& path) const { return parameters_.at(path); }
  /// The weights of this path, stored once.
  Value parameter(const std::string& path);
  /// Constants.
  Value tensor(const Tensor& values, const std::string& name = "");
  Value number(double value) { return tensor(Tensor::scalar(value)); }
  Value integer(Index value) { return integers({value}, {}); }
  Value integers(const Integers& values) { return integers(values, {std::ssize(values)}); }

  Value add(const Value& a, const Value& b) { return op("Add", {a, b}); }
  Value multiply(const Value& a, const Value& b) { return op("Mul", {a, b}); }
  Value where(const Value& condition, const Value& x, double otherwise) {
    return op("Where", {condition, x, number(otherwise)});
  }
  Value unsqueeze(const Value& x, const Integers& axes) {
    return op("Unsqueeze", {x, integers(axes)});
  }
  /// A size of 0 stays as it is.
  Value reshape(const Value& x, const Integers& sizes) {
    return op("Reshape", {x, integers(sizes)});
  }
  Value transpose(const Value& x, const Integers& axes) {
    return op("Transpose", {x}, {{"perm", axes}});
  }
  Value slice(const Value& x, Index axis, const Value& begin, const Value& end) {
    return op("Slice", {x, begin, end, integers({axis})});
  }
  Value slice(const Value& x, Index axis, Index begin, Index end) {
    return slice(x, axis, integers({begin}), integers({end}));
  }
  Value concat(const std::vector<Value>& parts, Index axis) {
    return op("Concat", parts, {{"axis", axis}});
  }

 private:
  Value integers(const Integers& values, const Integers& shape);
  std::string new_name(std::string_view of);

  onnx::GraphProto& graph_;
  const std::map<std::string, Tensor>& parameters_;
  std::map<std::string, Value> stored_;
  std::map<std::string, int, std::less<>> counts_;  ///< of names by what they are of
};

}  // namespace qkv::onnx_export
