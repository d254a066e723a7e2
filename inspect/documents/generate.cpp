#include "inspect/documents/generate.h"

namespace qkv::documents {

Json continuation(const Prompt& prompt, const Continuation& written) {
  return object({{"prompt", prompt.text}, {"text", written.text}, {"tokens", written.tokens}});
}

Json generate(const LoadedModel& trained, const Prompt& prompt, Index count,
              const Sampling& sampling, const std::vector<Replacement>& replaced,
              const std::function<void(std::string_view)>& pass_on) {
  const Hook hook = hook_of(replaced);
  return continuation(prompt, continuation_of(trained, prompt, count, sampling, pass_on, &hook));
}

}  // namespace qkv::documents
