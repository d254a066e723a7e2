#pragma once

#include "train/ranks/communicator.h"
#include "train/run/run.h"

namespace qkv {

/// Time and memory of a training step, and of using the model. Times are medians, in milliseconds.
struct Benchmark {
  double step_ms, data_and_forward_ms, backward_ms, optimizer_ms;
  double evaluation_ms;  ///< the loss of a batch without gradients
  double tokens_per_second;
  /// Speed of a language model with cached keys and values, one sequence, until its window is full.
  std::optional<double> generated_tokens_per_second;
  double gflops;  ///< 10^9 floating-point operations a second, counted as by Kaplan et al. (2020)
  double sgemm_gflops;  ///< of a large float32 matrix product on the same threads
  double peak_gflops;   ///< of float32 multiply-adds in registers on the same threads
  double peak_memory_mib;
  Index parameters;
  int threads;  ///< of each rank
  Index ranks;
};

/// Runs training steps for about `seconds`, after some to warm up, and evaluation and generation
/// for about a third of that. Nothing is written. On several ranks the times and the memory are
/// those of this one.
Benchmark benchmark(Run& run, double seconds, const Communicator& ranks = single_process);

}  // namespace qkv
