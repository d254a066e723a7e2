// How fast llama.cpp generates: llama_cpp LIBRARIES MODEL.gguf WINDOW TOKENS THREADS SECONDS prints
// the tokens a second of the faster of flash attention and plain attention, each for about so many
// seconds. Compiled and read by bench/compare_llama.
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace {

/// Threads that stay between the tokens, as in llama-bench; without one, llama.cpp starts threads
/// for each token.
ggml_threadpool_t pool_of(int threads) {
  const auto cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const auto create = reinterpret_cast<decltype(&ggml_threadpool_new)>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), "ggml_threadpool_new"));
  auto options = ggml_threadpool_params_default(threads);
  return create(&options);
}

/// The most probable token after this one, which joins the cached keys and values.
llama_token next(llama_context* context, llama_token token, int vocabulary) {
  if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0)
    throw std::runtime_error("llama_decode failed");
  const float* logits = llama_get_logits(context);
  return static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits);
}

/// Seconds of generating so many tokens from one.
double seconds_of(llama_context* context, int tokens, int vocabulary) {
  llama_memory_clear(llama_get_memory(context), false);
  const auto start = std::chrono::steady_clock::now();
  llama_token token = 2;
  for (int i = 0; i < tokens; ++i) token = next(context, token, vocabulary);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Tokens a second: the median of repetitions.
double rate(llama_model* model, llama_flash_attn_type flash, int window, int tokens, int threads,
            double seconds) {
  auto options = llama_context_default_params();
  options.n_ctx = options.n_batch = options.n_ubatch = static_cast<unsigned>(window);
  options.n_threads = options.n_threads_batch = threads;
  options.flash_attn_type = flash;
  llama_context* context = llama_init_from_model(model, options);
  if (context == nullptr) throw std::runtime_error("llama.cpp made no context");
  const auto pool = pool_of(threads);
  llama_attach_threadpool(context, pool, nullptr);
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  seconds_of(context, std::min(tokens, 8), vocabulary);  // the weights are read from the file now
  std::vector<double> times;
  for (double sum = 0; sum < seconds; sum += times.back())
    times.push_back(seconds_of(context, tokens, vocabulary));
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  llama_free(context);
  return tokens / *middle;
}

}  // namespace

int main(int, char** arguments) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  ggml_backend_load_all_from_path(arguments[1]);
  llama_model* model = llama_model_load_from_file(arguments[2], llama_model_default_params());
  if (model == nullptr) return EXIT_FAILURE;
  const int window = std::atoi(arguments[3]), tokens = std::atoi(arguments[4]),
            threads = std::atoi(arguments[5]);
  const double seconds = std::atof(arguments[6]);
  double best = 0;
  for (const auto flash : {LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_FLASH_ATTN_TYPE_DISABLED})
    best = std::max(best, rate(model, flash, window, tokens, threads, seconds));
  std::printf("%.3f\n", best);
}
