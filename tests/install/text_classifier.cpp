// A classifier of texts with a module of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <qkv/datasets/batch.h>
#include <qkv/datasets/tokenizer.h>
#include <qkv/layers/embedding.h>
#include <qkv/layers/linear.h>
#include <qkv/optim/optimizer.h>

struct BagOfVectors : qkv::Module {
  qkv::Embedding embedding;
  qkv::Linear out;
  BagOfVectors(qkv::Index words, qkv::Index classes)
      : embedding(words, 16, 0.1), out(16, classes) {}
  qkv::Tensor operator()(const qkv::TokenBatch& batch) const {
    return out(qkv::masked_mean(embedding(batch.ids), batch.lengths));
  }
  void visit(qkv::ModuleVisitor& visit) override { visit("embedding", embedding)("out", out); }
};

int main() {
  const std::vector<std::string> texts = {"a warm and funny film", "dull from start to end",
                                          "I loved it", "I hated it"};
  const qkv::Indices labels({1, 0, 1, 0}, {4});
  const auto words = qkv::Tokenizer::learn(fmt::format("{}", fmt::join(texts, "\n")));
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::string& text : texts) ids.push_back(words.encode(text));
  BagOfVectors model(words.vocabulary().size(), 2);
  qkv::initialise(model, 1);
  const auto parameters = qkv::parameters(model);
  const auto optimizer = qkv::make_optimizer({});
  for (std::int64_t step = 0; step < 100; ++step)
    optimizer->step(parameters, qkv::gradients_of(qkv::cross_entropy(model(qkv::pad(ids)), labels)),
                    0.05, step);
  const std::vector<std::vector<std::int32_t>> unseen = {words.encode("a funny film")};
  fmt::print("good: {:.2f}\n", qkv::softmax(model(qkv::pad(unseen)))(0, 1));
}
