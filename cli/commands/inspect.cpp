#include <algorithm>

#include "cli/commands/shared.h"
#include "cli/heat_map.h"
#include "inspect/weight_statistics.h"

namespace qkv::commands {
namespace {

struct Options {
  std::string model;
  std::string parameter;
  std::string diff;
  bool json = false;
};

using Rows = std::vector<std::vector<std::string>>;

std::string number(double v) {
  return fmt::format("{:.4f}", v);
}

Json to_json(const std::string& path, const Tensor& value) {
  const Statistics s = statistics(value);
  return {{"path", path},
          {"shape", std::vector<Index>(value.shape().begin(), value.shape().end())},
          {"norm", s.norm},
          {"mean", s.mean},
          {"std", s.deviation},
          {"min", s.min},
          {"max", s.max},
          {"zeros", s.zeros},
          {"histogram", s.histogram}};
}

std::string to_table(const std::vector<NamedParameter>& shown) {
  Rows rows = {{"parameter", "shape", "norm", "mean", "std", "min", "max", "zeros", "histogram"}};
  for (const auto& [path, parameter] : shown) {
    const Statistics s = statistics(*parameter);
    rows.push_back({path, to_string(parameter->shape()), number(s.norm), number(s.mean),
                    number(s.deviation), number(s.min), number(s.max),
                    fmt::format("{:.0f}%", s.zeros * 100), spark_line(s.histogram)});
  }
  return table(rows);
}

Json to_json(const std::vector<HeadSpectrum>& spectra) {
  Json heads = Json::array();
  for (const HeadSpectrum& s : spectra)
    heads.push_back({{"path", s.path},
                     {"head", s.head},
                     {"qk_singular_values", s.qk},
                     {"ov_singular_values", s.ov}});
  return heads;
}

/// The first singular values of one product in each head.
std::string to_table(const std::vector<HeadSpectrum>& spectra, const std::string& title,
                     std::vector<double> HeadSpectrum::*values) {
  constexpr std::size_t most = 8;
  Rows rows = {{title}};
  for (std::size_t i = 1; i <= most; ++i) rows[0].push_back(std::to_string(i));
  for (const HeadSpectrum& s : spectra) {
    if ((s.*values).empty()) continue;
    rows.push_back({fmt::format("{} head {}", s.path, s.head)});
    for (std::size_t i = 0; i < most; ++i)
      rows.back().push_back(i < (s.*values).size() ? number((s.*values)[i]) : "");
  }
  return rows.size() > 1 ? fmt::format("\n{}", table(rows)) : "";
}

/// A matrix or vector in full when it fits a screen, else its first rows and columns.
std::string numbers(const Tensor& x) {
  constexpr Index most_rows = 16, cell = 9, ellipsis = 5;
  const Index most_columns = std::clamp<Index>((output_width() - ellipsis) / cell, 1, 10);
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

/// Whether `name` is a parameter's path or its end, or that of the layer that it belongs to:
/// "w_q.weight" and "w_q" both name encoder.layers.0.attention.w_q.weight.
bool is_named(const std::string& path, const std::string& name) {
  const auto ends = [&name](const std::string& whole) {
    return whole == name || whole.ends_with("." + name);
  };
  const auto dot = path.rfind('.');
  return ends(path) || (dot != path.npos && ends(path.substr(0, dot)));
}

std::vector<NamedParameter> chosen(Trained& trained, const Options& options) {
  auto all = parameters(*trained.network);
  if (options.parameter.empty()) return all;
  std::erase_if(all, [&](const NamedParameter& p) { return !is_named(p.path, options.parameter); });
  require<UserError>(!all.empty(), "{} has no parameter {}; `qkv inspect {}` lists them",
                     options.model, options.parameter, options.model);
  return all;
}

std::vector<Change> changes_between(Trained& trained, const Options& options) {
  Trained before = load_trained(options.diff);
  try {
    return changes(chosen(trained, options), parameters(*before.network));
  } catch (const ShapeError& error) {
    throw UserError(fmt::format("--diff {}: {}", options.diff, error.what()));
  }
}

int show_changes(Trained& trained, const Options& options) {
  const auto all = changes_between(trained, options);
  if (options.json) {
    Json list = Json::array();
    for (const Change& c : all)
      list.push_back({{"path", c.path},
                      {"norm", c.norm},
                      {"norm_before", c.norm_before},
                      {"distance", c.distance},
                      {"relative_change", c.relative()},
                      {"cosine", c.cosine}});
    print({{"changes", list}});
    return 0;
  }
  Rows rows = {{"parameter", "|w|", "|w before|", "|w - w before|", "relative", "cosine"}};
  for (const Change& c : all)
    rows.push_back({c.path, number(c.norm), number(c.norm_before), number(c.distance),
                    number(c.relative()), number(c.cosine)});
  fmt::print("{}", table(rows));
  return 0;
}

void show_one(const NamedParameter& shown, bool with_path) {
  const Tensor& value = shown.parameter->value();
  fmt::print("\n{}{}", with_path ? shown.path + "\n" : "", numbers(value));
  const Colours depth = colours();
  if (depth != Colours::none)
    fmt::print("\nblue: below 0, red: above\n{}", weight_map(value, depth, output_width()));
}

int run(const Options& options) {
  Trained trained = load_trained(options.model);
  if (!options.diff.empty()) return show_changes(trained, options);
  const auto shown = chosen(trained, options);
  const auto spectra = options.parameter.empty() ? head_spectra(shown, trained.config.model.heads)
                                                 : std::vector<HeadSpectrum>();
  if (options.json) {
    Json list = Json::array();
    for (const auto& [path, parameter] : shown) {
      list.push_back(to_json(path, *parameter));
      if (!options.parameter.empty()) list.back()["values"] = commands::to_json(parameter->value());
    }
    Json document = {{"parameters", list}};
    if (options.parameter.empty())
      document["heads"] = to_json(spectra);
    else if (shown.size() == 1)
      document["values"] = commands::to_json(shown[0].parameter->value());
    print(document);
    return 0;
  }
  fmt::print("{}", to_table(shown));
  if (!options.parameter.empty()) {
    for (const NamedParameter& parameter : shown) show_one(parameter, shown.size() > 1);
    return 0;
  }
  fmt::print("{} numbers, after step {}\n{}{}", parameter_count(*trained.network), trained.step,
             to_table(spectra, "singular values of W_q W_k^T", &HeadSpectrum::qk),
             to_table(spectra, "singular values of W_v W_o", &HeadSpectrum::ov));
  return 0;
}

}  // namespace

void add_inspect(CommandLine& program) {
  add_command<Options>(
      program, "inspect", "List a model's parameters, show one, or what training changed",
      [](Command& command, Options& options) {
        add_model_argument(command, options.model);
        command.add_option(
            "PARAMETER", options.parameter,
            "Path of a parameter or layer, or its end: w_q.weight, layers.0.attention, w_q");
        command.add_option("--diff", options.diff,
                           "An earlier model: list what changed since, the most changed first");
        add_json_flag(command, options.json);
      },
      run);
}

}  // namespace qkv::commands
