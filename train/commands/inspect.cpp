#include <algorithm>
#include <cmath>

#include "train/commands/shared.h"
#include "train/terminal.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::string parameter;
  bool json = false;
};

struct Statistics {
  double norm, mean, deviation, min, max;
};

Statistics statistics(const Tensor& x) {
  const auto values = x.values();
  const auto count = static_cast<double>(values.size());
  double total = 0, squares = 0;
  for (const double v : values) total += v, squares += v * v;
  const double mean = total / count;
  return {std::sqrt(squares), mean, std::sqrt(std::max(squares / count - mean * mean, 0.0)),
          std::ranges::min(values), std::ranges::max(values)};
}

Json to_json(const std::string& path, const Tensor& value) {
  const Statistics s = statistics(value);
  return {{"path", path},
          {"shape", std::vector<Index>(value.shape().begin(), value.shape().end())},
          {"norm", s.norm},
          {"mean", s.mean},
          {"std", s.deviation},
          {"min", s.min},
          {"max", s.max}};
}

std::vector<std::string> to_row(const std::string& path, const Tensor& value) {
  const Statistics s = statistics(value);
  const auto number = [](double v) { return fmt::format("{:.4f}", v); };
  return {path,           to_string(value.shape()), number(s.norm),
          number(s.mean), number(s.deviation),      number(s.min),
          number(s.max)};
}

/// A matrix or vector in full when it fits a screen, else its first rows and columns.
std::string numbers(const Tensor& x) {
  constexpr Index most_rows = 16, most_columns = 10;
  const Index columns = x.rank() ? x.dim(-1) : 1, rows = x.size() / columns;
  const auto values = x.values();
  std::string text;
  for (Index r = 0; r < std::min(rows, most_rows); ++r) {
    for (Index c = 0; c < std::min(columns, most_columns); ++c)
      text += fmt::format("{:9.4f}", values[static_cast<std::size_t>(r * columns + c)]);
    text += columns > most_columns ? "  ...\n" : "\n";
  }
  return rows > most_rows ? text + "      ...\n" : text;
}

int run(const Options& options) {
  Trained trained = load_trained(options.model);
  auto shown = parameters(*trained.network);
  if (!options.parameter.empty()) {
    std::erase_if(shown, [&](const NamedParameter& p) { return p.path != options.parameter; });
    require<UserError>(!shown.empty(), "{} has no parameter {}; `qkv inspect {}` lists them",
                       options.model, options.parameter, options.model);
  }
  Json document = {{"parameters", Json::array()}};
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "shape", "norm", "mean", "std", "min", "max"}};
  for (const auto& [path, parameter] : shown) {
    document["parameters"].push_back(to_json(path, parameter->value()));
    rows.push_back(to_row(path, parameter->value()));
  }
  if (options.json) {
    print(document);
    return 0;
  }
  fmt::print("{}", table(rows));
  if (options.parameter.empty())
    fmt::print("{} numbers, after step {}\n", parameter_count(*trained.network), trained.step);
  else
    fmt::print("\n{}", numbers(shown[0].parameter->value()));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  add_command<Options>(
      program, action, "inspect", "List a model's parameters, or show one",
      [](CLI::App& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option("PARAMETER", options.parameter,
                           "Path, such as encoder.layers.0.attention.w_q.weight");
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
