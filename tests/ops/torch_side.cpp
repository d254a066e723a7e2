#include "tests/ops/torch_side.h"

#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/ops/check.h"

namespace qkv::fuzz {

TorchSide::TorchSide(const std::string& script) {
  std::array<int, 2> there{}, back{};
  require<ValueError>(pipe(there.data()) == 0 && pipe(back.data()) == 0, "[fuzz] no pipes");
  process_ = fork();
  require<ValueError>(process_ >= 0, "[fuzz] cannot fork");
  if (process_ == 0) {
    dup2(there[0], STDIN_FILENO);
    dup2(back[1], STDOUT_FILENO);
    for (const int end : {there[0], there[1], back[0], back[1]}) close(end);
    execl("/usr/bin/python3", "python3", script.c_str(), static_cast<char*>(nullptr));
    _exit(77);
  }
  close(there[0]);
  close(back[1]);
  to_.reset(fdopen(there[1], "w"));
  from_.reset(fdopen(back[0], "r"));
  version_ = line();
}

TorchSide::~TorchSide() {
  to_.reset();
  from_.reset();
  waitpid(process_, nullptr, 0);
}

std::string TorchSide::line() const {
  std::string text;
  for (int c = std::fgetc(from_.get()); c != EOF && c != '\n'; c = std::fgetc(from_.get()))
    text += static_cast<char>(c);
  return text;
}

std::vector<TorchSide::Answer> TorchSide::evaluate(const Case& sample) const {
  std::vector<std::string> shapes, steps;
  for (const Input& input : sample.inputs)
    shapes.push_back(fmt::format("[{}]", fmt::join(input.shape.sizes(), ", ")));
  for (const Step& step : sample.steps)
    steps.push_back(fmt::format("\"{}\"", call_of(sample, step)));
  fmt::print(to_.get(), "{{\"inputs\": [{}], \"steps\": [{}], \"weights\": {}}}\n",
             fmt::join(shapes, ", "), fmt::join(steps, ", "), sample.weights.size());
  const auto write = [&](const std::vector<double>& values) {
    std::fwrite(values.data(), sizeof(double), values.size(), to_.get());
  };
  for (const Input& input : sample.inputs) write(input.values);
  write(sample.weights);
  std::fflush(to_.get());
  std::vector<Answer> answers(2);
  for (Answer& answer : answers) {
    const std::string head = line();
    require<ValueError>(!head.empty(), "[fuzz] PyTorch's side has ended");
    if (head[0] == '!') {
      answer.error = head.substr(2);
      continue;
    }
    answer.values.resize(std::stoul(head));
    const std::size_t read =
        std::fread(answer.values.data(), sizeof(double), answer.values.size(), from_.get());
    require<ValueError>(read == answer.values.size(), "[fuzz] PyTorch's side has ended");
  }
  return answers;
}

}  // namespace qkv::fuzz
