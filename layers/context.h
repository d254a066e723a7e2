#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops.h"
#include "core/parameter.h"
#include "layers/key_value_cache.h"

namespace qkv {

/// How a recorded vector comes about, in the field's symbols; "_i" marks what belongs to token i.
struct Formula {
  std::string symbol;   ///< "x_i"
  std::string formula;  ///< "e_i + p_i"
  std::string meaning;  ///< "embedding + position"
};

/// A layer with a table of the formulas of what it records. Whatever the table leaves out has its
/// name as its symbol.
struct FormulaSource {
  struct Row {
    std::string_view name;  ///< as recorded: "attended" or "norm_1.output"
    Formula formula;
  };
  virtual ~FormulaSource() = default;
  virtual std::vector<Row> formulas() const = 0;
};

/// Keeps the intermediate results of a forward pass: attention weights, queries, keys, values and
/// hidden states by the path of the module that computed them, such as
/// "encoder.layers.0.attention.weights".
class Recorder {
 public:
  /// A block in a stack.
  struct Layer {
    std::string path;  ///< "encoder.layers.0"
    Index number;      ///< counted from 0
  };
  struct Record {
    std::string path;            ///< module and name: "encoder.layers.0.attention.weights"
    std::string module, name;    ///< "encoder.layers.0.attention" and "weights"
    std::optional<Layer> layer;  ///< that computed it; none outside of stacks
    Tensor value;
    Formula formula;

    bool is_output_of_layer() const { return layer && module == layer->path && name == "output"; }
  };

  explicit Recorder(Module& model);
  /// `name` is the value's in the module, or with the path of a member: "norm_1.output".
  void record(const Module& module, std::string_view name, const Tensor& value);
  /// Later records belong to block `number` of a stack; with null to none.
  void enter_layer(const Module* block, Index number);

  /// Throws ValueError listing what was recorded when there is nothing of that path.
  const Tensor& at(const std::string& path) const;
  const Tensor& at(const Module& module, std::string_view name) const {
    return at(path_of(module, name));
  }
  bool has(const std::string& path) const { return find(path) != nullptr; }
  /// In the order of computing; of a module that ran twice the last result.
  const std::vector<Record>& all() const { return recorded_; }

 private:
  const Record* find(const std::string& path) const;
  std::string path_of(const Module& module) const;
  std::string path_of(const Module& module, std::string_view name) const;

  std::map<const Module*, std::string> paths_;
  std::vector<Record> recorded_;
  std::optional<Layer> layer_;
};

/// Called with each activation that `module` computes under a name; returns what the forward pass
/// continues with in its place (a forward hook of PyTorch, a hook point of TransformerLens).
using Hook = std::function<Tensor(const Module& module, std::string_view name, Tensor value)>;

/// Companions of a forward pass, in any combination.
struct ContextOptions {
  std::optional<Random> random = {};  ///< random stream of this step: training; none: evaluation
  Recorder* recorder = nullptr;       ///< keeps what the layers compute
  KeyValueCache* cache = nullptr;     ///< a decoder continues after its tokens and appends to it
  const Hook* hook = nullptr;         ///< replaces activations
  bool recompute = false;  ///< blocks keep their input alone and are recomputed in backward
};

/// A forward pass's arguments besides its inputs. Explicit, so that no layer holds a mode, a seed
/// or a hook.
class Context {
 public:
  explicit Context(ContextOptions options = {})
      : random_(options.random),
        recorder_(options.recorder),
        cache_(options.cache),
        hook_(options.hook),
        recomputes_(options.recompute) {}

  bool training() const { return random_.has_value(); }
  /// An independent stream for each call, in the order of calls.
  Random next_random() { return random_ ? random_->next() : Random(0, Purpose::dropout); }
  /// `probability` in training, else 0.
  double dropout_probability(double probability) const { return training() ? probability : 0; }
  Tensor dropped(const Tensor& x, double probability) {
    return dropout(x, dropout_probability(probability), next_random());
  }

  bool recomputes() const { return recomputes_; }

  KeyValueCache* cache() const { return cache_; }
  /// A copy with another cache.
  Context with_cache(KeyValueCache& cache) const {
    Context context = *this;
    context.cache_ = &cache;
    return context;
  }
  /// The position of this pass's first token in its sequence.
  Index position() const { return cache_ ? cache_->length() : 0; }

  bool records() const { return recorder_ != nullptr; }
  /// See `Recorder::record`.
  void record(const Module& module, std::string_view name, const Tensor& value) const {
    if (recorder_) recorder_->record(module, name, value);
  }
  /// An activation that may be replaced: `value`, or what the hook makes of it.
  Tensor replaced(const Module& module, std::string_view name, Tensor value) const {
    return hook_ ? (*hook_)(module, name, std::move(value)) : value;
  }
  /// Records and returns the replaced value.
  Tensor hooked(const Module& module, std::string_view name, Tensor value) const {
    value = replaced(module, name, std::move(value));
    record(module, name, value);
    return value;
  }
  /// See `Recorder::enter_layer`.
  void enter_layer(const Module* block, Index number = 0) const {
    if (recorder_) recorder_->enter_layer(block, number);
  }

 private:
  std::optional<Random> random_;
  Recorder* recorder_;
  KeyValueCache* cache_;
  const Hook* hook_;
  bool recomputes_;
};

}  // namespace qkv
