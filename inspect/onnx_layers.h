#pragma once

#include "inspect/onnx_graph.h"
#include "layers/positions.h"

namespace qkv::onnx_export {

/// Tokens of a batch of sequences, and values that follow from them.
struct Tokens {
  Value ids;        ///< [batch, time]
  Value time;       ///< [1]
  Value positions;  ///< 0, 1, ... [time]
};

/// Which keys attention may use, and the sequence of cross-attention.
struct Attended {
  Value visible;       ///< [batch or 1, 1, query or 1, key]
  Value encoded = {};  ///< [batch, time, width]
  Value visible_encoded = {};
  std::string time = "time";  ///< the name of the axis of queries
};

struct Output {
  std::string name;
  Value value;
  std::vector<std::string> axes;
};

/// Adds layers to a graph, as the call operators of layers/ compute them. A path names a module and
/// its parameters; a module without parameters in the model is left out.
class Layers : public Graph {
 public:
  Layers(const ModelOptions& options, const std::map<std::string, Tensor>& parameters,
         onnx::GraphProto& graph)
      : Graph(graph, parameters), options_(options) {}

  Tokens tokens_of(const Value& ids);
  /// Which keys a query attends to that sees no later ones, [1, 1, query, key].
  Value causal(const Tokens& tokens);
  Value embedded(const Tokens& tokens);
  Value linear(const Value& x, const std::string& path);
  Value times_transposed(const Value& x, const Value& weight) {
    return op("MatMul", {x, transpose(weight, {1, 0})});
  }
  Value activated(const Value& x);
  Value norm(const Value& x, const std::string& path);
  Value feed_forward(const Value& x, const std::string& path) {
    return linear(activated(linear(x, path + ".w_1")), path + ".w_2");
  }
  Value transformer(Value x, const std::string& path, const Tokens& tokens,
                    const Attended& attended);
  /// `lengths` [batch]
  Value recurrent(Value x, const Value& lengths);
  /// `real` [batch, time]: which tokens are no padding.
  Value convolution(Value x, const Value& real);
  Value fixed_length(const Value& x, const Value& real, const Tokens& tokens);

  /// The weights of the attention layers so far, [batch, head, query, key].
  const std::vector<Output>& attention_weights() const { return weights_; }

 private:
  /// The positions with the model's values at this path.
  template <class Positions>
  const Positions& with_values(Positions& positions, const std::string& path) const {
    for (const auto& [name, parameter] : parameters(positions))
      parameter->assign(tensor(fmt::format("{}.{}", path, name)));
    return positions;
  }
  /// The first rows of a table of positions, one for each token.
  Value first_rows(const Value& table, const Tokens& tokens) {
    return slice(table, 0, integers({0}), tokens.time);
  }
  template <class Sublayer>
  Value with_residual(const Value& x, const std::string& norm_path, Sublayer sublayer);
  Value heads(const Value& x, const std::string& projection, Index heads);
  Value rotated(const Value& x, const Tokens& tokens, Index head_width);
  Value with_bias(const Value& scores, const std::string& path, const Tokens& tokens);
  Value attention(const Value& query, const Value& source, const std::string& path,
                  const Tokens& tokens, const Attended& attended, bool cross);

  const ModelOptions& options_;
  std::vector<Output> weights_;
};

}  // namespace qkv::onnx_export
