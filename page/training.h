#pragma once

#include <memory>

#include "inspect/documents/json.h"
#include "page/request.h"

namespace qkv::page {

/// The calls that train a model. It takes the steps of `qkv train`, bit for bit, and writes
/// nothing. All calls but `train` throw UserError before the first `train`.
class Training {
 public:
  explicit Training(Files& files);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// {"config": TOML, "same_files"} -> {"parameters", "steps": numbers,
  /// "examples": {"train", "valid", "test": numbers}, "labels", "tokens": size of the vocabulary,
  /// "score_name": the metric that selects the best checkpoint}. Starts a run on the files that the
  /// config names. "same_files": they are those of the earlier run, whose data need not be read
  /// again where both configs read them alike. Throws as the program does; an earlier run then
  /// stays.
  Json train(const Request& request);
  /// {"count"} -> {"step", "losses": of each step, "learning_rate", "gradient_norm", "finished"}:
  /// takes so many steps, or fewer where the run finishes. The loss of an update that was left out
  /// is that of the one before. Throws Error where the training diverges.
  Json step(const Request& request);
  /// {"split": "train", "valid" or "test"} -> the document of `qkv eval`; with train.ema of the
  /// averages.
  Json evaluate(const Request& request);
  /// {"brief"} -> {"step", "config": TOML, "vocabulary", "checksum"} and the file "parameters", as
  /// `Looking::load` takes them, with train.ema the averages; "brief": without config and
  /// vocabulary.
  Json parameters(const Request& request);
  /// -> {} and the file "model.safetensors", as `qkv export` writes it.
  Json export_model(const Request& request);

 private:
  struct Session;
  Session& session();

  Files& files_;
  std::unique_ptr<Session> session_;
};

}  // namespace qkv::page
