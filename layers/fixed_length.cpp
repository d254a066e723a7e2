#include "layers/fixed_length.h"

#include "layers/feed_forward.h"
#include "layers/padding.h"

namespace qkv {
namespace {

struct FixedLengthModel final : Model {
  FixedLengthModel(const ModelOptions& options, Index vocabulary)
      : Model(options, vocabulary),
        options(options),
        feed_forward(options.max_length * options.width, options.feed_forward, options.bias,
                     options.activation) {
    require<ValueError>(options.feed_forward > 0,
                        "[feed-forward] the model needs a hidden layer, got feed_forward = 0");
  }

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    const Tensor x = embedded(ids, lengths, context);
    const Index batch = ids.dim(0), time = ids.dim(1), longest = options.max_length;
    require<ValueError>(
        time <= longest,
        "[feed-forward] a sequence of {} tokens is longer than max_length = {}; cut the "
        "sequence or raise max_length",
        time, longest);
    const Tensor all = pad(without_padding(x, lengths), 1, 0, longest - time);
    const Tensor flat = reshape(context.dropped(all, options.dropout), {batch, -1});
    const Tensor y = slice(reshape(feed_forward(flat), {batch, longest, -1}), 1, 0, time);
    return contextual(y, context);
  }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding)("feed_forward", feed_forward);
  }

  ModelOptions options;
  FeedForward feed_forward;
};

}  // namespace

std::unique_ptr<Model> make_fixed_length_model(const ModelOptions& options, Index vocabulary) {
  return std::make_unique<FixedLengthModel>(options, vocabulary);
}

}  // namespace qkv
