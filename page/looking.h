#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inspect/documents/json.h"
#include "page/request.h"

namespace qkv::page {

/// The calls that inspect models. Each document has the form of the JSON of the command of the same
/// name. All calls but `load` name a "model", and may have "changes": {"uniform", "shuffled",
/// "without_positions": bool, "off": the id of a component}, interventions on the model, of which
/// those have no effect that concern what it does not have. They throw UserError for a model, a
/// token or a text that the engine cannot take.
class Looking {
 public:
  explicit Looking(Files& files) : files_(files) {}

  /// {"model", "config": TOML, "vocabulary": {"tokens", ...}} and the file "parameters":
  /// float32, little-endian, of all parameters in their order -> {"parameters": [{"path",
  /// "shape"}]}. Without "config" a loaded model gets other parameters.
  Json load(const Request& request);
  /// {"config", "vocabulary"} -> {} and the file "parameters" of that model before its first step.
  Json untrained(const Request& request);
  /// {"text"} -> {"tokens", "ids", "targets": positions that the task asks about, "unknown": bool
  /// of a token, "refusal": why there is no answer or null, "words": number, "unknown_words",
  /// "components": ids}
  Json read(const Request& request);
  /// {"text", "index"}: of the task's words and, where it answers about words, of token "index".
  Json predict(const Request& request);
  /// {"text"}. A model without attention has no "rollout" and no layers.
  Json attend(const Request& request);
  /// {"text", "index", "output": whether it is that of an output of an encoder-decoder,
  /// "parameters": whether the document has them}; without logit lens and attribution.
  Json explain(const Request& request);
  /// {"text", "index"}; without "index" the means of all tokens.
  Json embed(const Request& request);
  /// {"text", "index", "count"} -> {"nearest": [{"word", "cosine"}]}
  Json nearest(const Request& request);
  /// {"text", "index"} -> {"whole": {"loss"}, "components": [{"id", "zero": {"loss",
  /// "loss_change"}}]}: of the answer that the model gives about a token, of the text where "index"
  /// is missing, or of its output.
  Json ablate(const Request& request);
  /// {"text", "tokens"} -> {"prompt", "text", "tokens"}, greedily.
  Json generate(const Request& request);
  /// {"points": [{"text", "index"}]} -> {"before": {"share", "points": [[x, y]]}, "after": ...}:
  /// the static and contextual vectors in their two principal components; index -1: the mean of all
  /// tokens.
  Json map(const Request& request);
  /// -> {"probes": see documents::probes}, of the model without its "off".
  Json probe(const Request& request);

 private:
  /// A model, and the same after the interventions that were asked for last.
  struct Model {
    LoadedModel loaded;
    std::optional<Request> changes = {};
    std::optional<LoadedModel> intervened = {};
  };
  /// A model as a call sees it.
  struct View {
    const LoadedModel& model;
    std::vector<Replacement> off;  ///< zero in place of a component
  };

  Model& named(const std::string& name);
  /// The model that a request names, after its changes.
  View model_of(const Request& request);

  Files& files_;
  std::map<std::string, Model> models_;
};

}  // namespace qkv::page
