// A tagger of words with a module of its own: sentences of different lengths in one batch, whose
// padding nothing attends to and no loss counts.
#include <fmt/format.h>
#include <qkv/datasets/batch.h>
#include <qkv/datasets/conll.h>
#include <qkv/datasets/text.h>
#include <qkv/layers/attention.h>
#include <qkv/layers/embedding.h>
#include <qkv/layers/layer_norm.h>
#include <qkv/layers/linear.h>
#include <qkv/optim/optimizer.h>

using Lists = std::vector<std::vector<std::int32_t>>;

struct Tagger : qkv::Module {
  qkv::Embedding embedding;
  qkv::MultiHeadAttention attention;
  qkv::LayerNorm norm;
  qkv::Linear out;
  Tagger(qkv::Index words, qkv::Index tags)
      : embedding(words, 32, 0.5, qkv::Vocabulary::padding),
        attention({.width = 32, .heads = 4, .dropout = 0.1}),
        norm(32),
        out(32, tags) {}
  qkv::Tensor operator()(const qkv::TokenBatch& batch, qkv::Context& context) const {
    const auto x = embedding(batch.ids) + qkv::sinusoidal_positions(0, batch.ids.dim(1), 32);
    return out(norm(x + attention(x, x, {.key_lengths = batch.lengths}, context)));
  }
  void visit(qkv::ModuleVisitor& visit) override {
    visit("embedding", embedding)("attention", attention)("norm", norm)("out", out);
  }
};

int main(int, char** arguments) {
  qkv::ReadCallback silent;
  qkv::Vocabulary::Counts words, tags;
  std::vector<qkv::LabelledWords> sentences;
  qkv::for_each_conll_sentence(arguments[1], silent, [&](const qkv::LabelledWords& sentence) {
    sentences.push_back(sentence);
    for (const std::string& word : sentence.words) ++words[word];
    for (const std::string& tag : sentence.labels) ++tags[tag];
  });
  const auto vocabulary = qkv::Vocabulary::build(words, 1);
  std::vector<std::string> names;
  for (const auto& [tag, count] : tags) names.push_back(tag);
  const qkv::Vocabulary labels(names, qkv::ReservedIds::none);
  Lists ids, answers;
  for (const qkv::LabelledWords& sentence : sentences) {
    auto& id = ids.emplace_back();
    for (const std::string& word : sentence.words) id.push_back(vocabulary.id(word));
    auto& answer = answers.emplace_back();
    for (const std::string& tag : sentence.labels) answer.push_back(labels.id(tag));
  }
  Tagger model(vocabulary.size(), labels.size());
  qkv::initialise(model, 1);
  const auto parameters = qkv::parameters(model);
  const auto optimizer = qkv::make_optimizer({.kind = qkv::OptimizerKind::adam});
  const qkv::BatchSampler batches(std::ssize(ids), 16, 1);
  for (std::int64_t step = 0; step < 300; ++step) {
    Lists x, y;
    for (const qkv::Index i : batches.at(step)) {
      x.push_back(ids[i]);
      y.push_back(answers[i]);
    }
    qkv::Context training({.random = qkv::Random(1, qkv::Purpose::dropout, step)});
    const auto loss = [&] {
      return qkv::cross_entropy(model(qkv::pad(x), training), qkv::pad(y, -1).ids);
    };
    optimizer->step(parameters, qkv::gradients_of(loss()), 0.005, step);
  }
  const qkv::NoGrad no_grad;
  qkv::Context evaluation;
  const Lists one = {ids[0]};
  const auto found = qkv::argmax(model(qkv::pad(one), evaluation), -1);
  for (std::size_t i = 0; i < one[0].size(); ++i)
    fmt::print("{}/{} ", sentences[0].words[i], labels.token(found.data()[i]));
}
