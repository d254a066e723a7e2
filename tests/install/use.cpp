// Prints a trained model's answers about a text as JSON: use RUN TEXT. Four threads ask at once and
// hear the same.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <qkv/core/joining_thread.h>
#include <qkv/train/inference/trained_model.h>

#include <string>
#include <vector>

namespace {

std::string elements(const qkv::Tensor& x) {
  return fmt::format("[{}]", fmt::join(x.values(), ","));
}

std::string elements(const qkv::LayerWeights& layers) {
  std::vector<std::string> each;
  for (const qkv::Tensor& layer : layers) each.push_back(elements(layer));
  return fmt::format("[{}]", fmt::join(each, ","));
}

std::string answers(const qkv::TrainedModel& model, std::string_view text) {
  if (model.continues()) return model.generate(text, 20, {.temperature = 0});
  std::vector<std::string> said;
  for (const qkv::Prediction& answer : model.predict(text))
    said.push_back(fmt::format("[\"{}\",{},[{}]]", answer.label, answer.probability,
                               fmt::join(answer.probabilities, ",")));
  const qkv::TextVectors vectors = model.embed(text);
  const qkv::TextAttention attention = model.attend(text);
  return fmt::format(R"({{"predictions":[{}],"static":{},"contextual":{},"layers":{},"cross":{}}})",
                     fmt::join(said, ","), elements(vectors.static_vectors),
                     elements(vectors.contextual), elements(attention.layers),
                     elements(attention.cross));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const qkv::TrainedModel model = qkv::load(arguments[1]);
  std::vector<std::string> heard(4);
  {
    std::vector<qkv::JoiningThread> threads;
    for (std::string& one : heard)
      threads.emplace_back([&] { one = answers(model, arguments[2]); });
  }
  for (const std::string& one : heard)
    if (one != heard[0]) return 1;
  fmt::print("{}", heard[0]);
}
