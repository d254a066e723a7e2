#include <algorithm>

#include "cli/commands/shared.h"
#include "cli/heat_map.h"
#include "inspect/weight_statistics.h"

namespace qkv::commands {
namespace {

struct InspectOptions {
  std::string model;
  std::string parameter;
  std::string diff;
};

std::string decimal(double v) {
  return fmt::format("{:.4f}", v);
}

/// A parameter to show.
struct Shown {
  std::string path;
  Tensor value;
  Statistics statistics;
};

Json to_json(const Shown& shown) {
  const Statistics& s = shown.statistics;
  const Shape& shape = shown.value.shape();
  return {{"path", shown.path},
          {"shape", std::vector<Index>(shape.begin(), shape.end())},
          {"norm", s.norm},
          {"mean", s.mean},
          {"std", s.std},
          {"min", s.min},
          {"max", s.max},
          {"zeros", s.zeros},
          {"histogram", s.histogram}};
}

Rows to_table(const std::vector<Shown>& shown) {
  Rows rows = {{"parameter", "shape", "norm", "mean", "std", "min", "max", "zeros", "histogram"}};
  for (const auto& [path, value, s] : shown)
    rows.push_back({path, to_string(value.shape()), decimal(s.norm), decimal(s.mean),
                    decimal(s.std), decimal(s.min), decimal(s.max),
                    fmt::format("{:.0f}%", s.zeros * 100), spark_line(s.histogram)});
  return rows;
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

/// The first singular values of one product in each head, where there are any.
void add_table(Document& document, const std::vector<HeadSpectrum>& spectra,
               const std::string& title, std::vector<double> HeadSpectrum::*values) {
  constexpr std::size_t most = 8;
  Rows rows = {{title}};
  for (std::size_t i = 1; i <= most; ++i) rows[0].push_back(std::to_string(i));
  for (const HeadSpectrum& s : spectra) {
    if ((s.*values).empty()) continue;
    rows.push_back({fmt::format("{} head {}", s.path, s.head)});
    for (std::size_t i = 0; i < most; ++i)
      rows.back().push_back(i < (s.*values).size() ? decimal((s.*values)[i]) : "");
  }
  if (rows.size() == 1) return;
  document.add_text("\n");
  document.add_table(rows);
}

/// A matrix or vector in full when it fits a screen, else its first rows and columns.
std::string values_text(const Tensor& x, int width) {
  constexpr Index most_rows = 16, cell = 9, ellipsis = 5;
  const Index most_columns = std::clamp<Index>((width - ellipsis) / cell, 1, 10);
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
  const auto ends = [&name](const std::string& candidate) {
    return candidate == name || candidate.ends_with("." + name);
  };
  const auto dot = path.rfind('.');
  return ends(path) || (dot != path.npos && ends(path.substr(0, dot)));
}

std::vector<NamedParameter> chosen_parameters(LoadedModel& trained, const InspectOptions& options) {
  auto all = parameters(*trained.network);
  if (options.parameter.empty()) return all;
  std::erase_if(all, [&](const NamedParameter& p) { return !is_named(p.path, options.parameter); });
  require<UserError>(!all.empty(), "{} has no parameter {}; `qkv inspect {}` lists them",
                     options.model, options.parameter, options.model);
  return all;
}

std::vector<Change> changes_between(LoadedModel& trained, const InspectOptions& options) {
  LoadedModel before = load_model(options.diff);
  try {
    return changes(chosen_parameters(trained, options), parameters(*before.network));
  } catch (const ShapeError& error) {
    throw UserError(fmt::format("--diff {}: {}", options.diff, error.what()));
  }
}

Document changes_since(LoadedModel& trained, const InspectOptions& options) {
  const auto all = changes_between(trained, options);
  Json list = Json::array();
  Rows rows = {{"parameter", "|w|", "|w before|", "|w - w before|", "relative", "cosine"}};
  for (const Change& c : all) {
    list.push_back({{"path", c.path},
                    {"norm", c.norm},
                    {"norm_before", c.norm_before},
                    {"distance", c.distance},
                    {"relative_change", c.relative()},
                    {"cosine", c.cosine}});
    rows.push_back({c.path, decimal(c.norm), decimal(c.norm_before), decimal(c.distance),
                    decimal(c.relative()), decimal(c.cosine)});
  }
  Document document;
  document.data = {{"changes", list}};
  document.add_table(rows);
  return document;
}

/// All values of the parameters that the user named.
Document values_of(const std::vector<Shown>& shown) {
  Document document;
  Json list = Json::array();
  document.add_table(to_table(shown));
  for (const Shown& one : shown) {
    list.push_back(to_json(one));
    list.back()["values"] = commands::to_json(one.value);
    if (shown.size() > 1)
      document.add_text("\n{}\n", one.path);
    else
      document.add_text("\n");
    document.add_text("{}", values_text(one.value, output_width()));
    document.add_picture({.title = one.path + ": blue below 0, red above",
                          .content = Weights{one.value},
                          .needs_colours = true});
  }
  document.data = {{"parameters", list}};
  if (shown.size() == 1) document.data["values"] = list[0]["values"];
  return document;
}

/// A line for each parameter, and the singular values of each head.
Document overview(const LoadedModel& trained, const std::vector<Shown>& shown,
                  const std::vector<HeadSpectrum>& spectra) {
  Document document;
  Json list = Json::array();
  for (const Shown& one : shown) list.push_back(to_json(one));
  document.data = {{"parameters", list}, {"heads", to_json(spectra)}};
  if (!trained.init.empty()) document.data["init"] = trained.init;
  document.add_table(to_table(shown));
  document.add_text("{} parameters, after step {}\n", parameter_count(*trained.network),
                    trained.step);
  if (!trained.init.empty()) document.add_text("{}\n", trained.init);
  add_table(document, spectra, "singular values of W_q W_k^T", &HeadSpectrum::qk);
  add_table(document, spectra, "singular values of W_v W_o", &HeadSpectrum::ov);
  return document;
}

Document inspect(const InspectOptions& options) {
  LoadedModel trained = load_model(options.model);
  if (!options.diff.empty()) return changes_since(trained, options);
  const auto chosen = chosen_parameters(trained, options);
  std::vector<Shown> shown;
  shown.reserve(chosen.size());
  for (const auto& [path, parameter] : chosen)
    shown.push_back({path, parameter->value(), statistics(parameter->value())});
  return options.parameter.empty() ? overview(trained, shown, head_spectra(*trained.network))
                                   : values_of(shown);
}

}  // namespace

Command inspect_command() {
  const auto o = std::make_shared<InspectOptions>();
  return {
      .name = "inspect",
      .summary = "List a model's parameters, show one, or what training changed",
      .options = {model_argument(o->model),
                  {"PARAMETER", &o->parameter,
                   "Path of a parameter or layer, or its end: w_q.weight, layers.0.attention, w_q"},
                  {"--diff MODEL", &o->diff,
                   "An earlier model: list what changed since, largest relative change first"}},
      .has_pictures = true,
      .run = [o](const Stream&) { return inspect(*o); }};
}

}  // namespace qkv::commands
