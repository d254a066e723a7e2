#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/ops/case.h"

namespace qkv::fuzz {

/// torch_side.py in a process of its own, which evaluates cases.
class TorchSide {
 public:
  /// Starts it; `version` stays empty where PyTorch is not installed.
  explicit TorchSide(const std::string& script);
  ~TorchSide();
  TorchSide(const TorchSide&) = delete;
  TorchSide& operator=(const TorchSide&) = delete;

  const std::string& version() const { return version_; }

  struct Answer {
    std::vector<double> values;  ///< the output, and then the gradients
    std::string error;
  };
  /// In float32 and in float64.
  std::vector<Answer> evaluate(const Case& sample) const;

 private:
  std::string line() const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> to_, from_;
  pid_t process_ = 0;
  std::string version_;
};

}  // namespace qkv::fuzz
