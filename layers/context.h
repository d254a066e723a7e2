#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops.h"
#include "core/parameter.h"
#include "layers/key_value_cache.h"

namespace qkv {

/// Keeps the intermediate results of a forward pass: attention weights, queries, keys, values and
/// hidden states by the path of the module that computed them, such as
/// "encoder.layers.0.attention.weights".
class Recorder {
 public:
  struct Record {
    std::string path;
    Tensor value;
  };

  explicit Recorder(Module& model);
  void record(const Module& module, std::string_view what, const Tensor& value);

  /// Throws ValueError listing what was recorded when there is nothing of that name.
  const Tensor& at(const std::string& path) const;
  bool has(const std::string& path) const { return find(path) != nullptr; }
  /// In the order of computing; of a module that ran twice the last result.
  const std::vector<Record>& all() const { return recorded_; }

 private:
  const Record* find(const std::string& path) const;

  std::map<const Module*, std::string> paths_;
  std::vector<Record> recorded_;
};

/// What may accompany a forward pass, in any combination.
struct ContextOptions {
  std::optional<Random> random = {};  ///< random stream of this step: training; none: evaluation
  Recorder* recorder = nullptr;       ///< keeps what the layers compute
  KeyValueCache* cache = nullptr;     ///< a decoder continues after its tokens and appends to it
};

/// What a forward pass needs besides its inputs. Explicit, so that no layer holds a mode, a seed or
/// a hook.
class Context {
 public:
  explicit Context(ContextOptions options = {})
      : random_(options.random), recorder_(options.recorder), cache_(options.cache) {}

  bool training() const { return random_.has_value(); }
  /// An independent stream for each call, in the order of calls.
  Random next_random() { return random_ ? random_->next() : Random(0, Purpose::dropout); }
  /// `probability` in training, else 0.
  double dropout_probability(double probability) const { return training() ? probability : 0; }
  Tensor dropped(const Tensor& x, double probability) {
    return dropout(x, dropout_probability(probability), next_random());
  }

  KeyValueCache* cache() const { return cache_; }
  /// The position of this pass's first token in its sequence.
  Index position() const { return cache_ ? cache_->length() : 0; }

  bool records() const { return recorder_ != nullptr; }
  void record(const Module& module, std::string_view what, const Tensor& value) const {
    if (recorder_) recorder_->record(module, what, value);
  }

 private:
  std::optional<Random> random_;
  Recorder* recorder_;
  KeyValueCache* cache_;
};

}  // namespace qkv
