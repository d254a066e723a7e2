#include "inspect/documents/generate.h"

namespace qkv::documents {

Json generate(const LoadedModel& trained, const std::string& text, const Sentence& prompt,
              Index count, const Sampling& sampling, const std::vector<Replacement>& replaced,
              const std::function<void(std::string_view)>& pass_on) {
  const Hook hook = hook_of(replaced);
  const Continuation written =
      continuation_of(trained, text, prompt, count, sampling, pass_on, &hook);
  return object({{"prompt", text}, {"text", written.text}, {"tokens", written.tokens}});
}

}  // namespace qkv::documents
