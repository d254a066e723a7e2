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

/// Keeps what a model computes on the way: attention weights, queries, keys, values and hidden
/// states by the path of the module that computed them, such as
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
  /// In the order in which the model computed them; of a module that ran twice the last.
  const std::vector<Record>& all() const { return recorded_; }

 private:
  const Record* find(const std::string& path) const;

  std::map<const Module*, std::string> paths_;
  std::vector<Record> recorded_;
};

/// What a forward pass needs besides its inputs: whether it is training, its random numbers and who
/// looks on. Explicit, so that no layer holds a mode, a seed or a hook.
class Context {
 public:
  /// Evaluation; with a recorder, everything of interest is kept in it.
  explicit Context(Recorder* recorder = nullptr) : recorder_(recorder) {}
  /// Training, with random numbers for this step.
  explicit Context(const Random& random) : random_(random) {}
  /// Generation: a decoder goes on behind the tokens that the cache holds and adds its own.
  explicit Context(KeyValueCache& cache) : cache_(&cache) {}

  bool training() const { return random_.has_value(); }
  /// A stream of its own for each layer that asks, in the order of asking.
  Random next_random() { return random_ ? random_->next() : Random(0, Purpose::dropout); }
  /// `probability` while training, else 0.
  double dropout_probability(double probability) const { return training() ? probability : 0; }
  Tensor dropped(const Tensor& x, double probability) {
    return dropout(x, dropout_probability(probability), next_random());
  }

  KeyValueCache* cache() const { return cache_; }
  /// Where the tokens of this pass begin in their sequence.
  Index position() const { return cache_ ? cache_->length() : 0; }

  bool records() const { return recorder_ != nullptr; }
  void record(const Module& module, std::string_view what, const Tensor& value) const {
    if (recorder_) recorder_->record(module, what, value);
  }

 private:
  std::optional<Random> random_;
  Recorder* recorder_ = nullptr;
  KeyValueCache* cache_ = nullptr;
};

}  // namespace qkv
