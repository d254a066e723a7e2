// Trains a GPT on the characters of a text, saves it, loads it and continues a prompt with it:
// char_gpt TEXT STEPS.
#include <fmt/format.h>
#include <qkv/datasets/batch.h>
#include <qkv/datasets/tokenizer.h>
#include <qkv/optim/optimizer.h>
#include <qkv/train/storage/module_file.h>
#include <qkv/train/tasks/generate.h>

#include <fstream>
#include <sstream>

int main(int, char** arguments) {
  const std::string text = (std::ostringstream() << std::ifstream(arguments[1]).rdbuf()).str();
  const auto tokenizer = qkv::Tokenizer::learn(text, {qkv::TokenizerKind::character, false});
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  const qkv::Index window = 32, vocabulary = tokenizer.vocabulary().size();
  const auto make = [&](std::uint64_t seed) {
    return qkv::Network({.kind = qkv::ModelKind::decoder, .layers = 2, .max_length = window}, {},
                        vocabulary, vocabulary, {seed, qkv::Purpose::initialisation});
  };
  qkv::Network model = make(1), loaded = make(2);
  const auto parameters = qkv::parameters(model);
  const auto optimizer = qkv::make_optimizer({.kind = qkv::OptimizerKind::adamw});
  const qkv::BatchSampler batches(std::ssize(ids) - window, 16, 1);
  for (std::int64_t step = 0; step < std::stoll(arguments[2]); ++step) {
    const auto [x, next] = qkv::windows(ids, batches.at(step), window);
    qkv::Tensor loss = qkv::cross_entropy(model.logits((*model.model)(x)), next);
    if (step % 50 == 0) fmt::print("step {} loss {:.3f}\n", step, loss.item());
    optimizer->step(parameters, qkv::gradients_of(std::move(loss)), 3e-3, step);
  }
  qkv::save("gpt.h5", model);
  qkv::load("gpt.h5", loaded);
  qkv::generate(loaded, tokenizer.encode("To be"), 40, window, {.temperature = 0},
                [&](std::int32_t id) { fmt::print("{}", tokenizer.vocabulary().token(id)); });
}
