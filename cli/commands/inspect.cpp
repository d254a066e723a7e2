#include <algorithm>

#include "cli/commands/shared.h"
#include "inspect/weight_statistics.h"

namespace qkv::commands {
namespace {

struct InspectOptions {
  std::string model;
  std::string parameter;
  std::string diff;
};

Json to_json(const std::string& path, const Tensor& value) {
  const Statistics s = statistics(value);
  return object({{"path", path},
                 {"shape", std::vector<Index>(value.shape().begin(), value.shape().end())},
                 {"norm", s.norm},
                 {"mean", s.mean},
                 {"std", s.std},
                 {"min", s.min},
                 {"max", s.max},
                 {"zeros", s.zeros},
                 {"histogram", s.histogram}});
}

Cells to_table(const Json& parameters) {
  Json shown = parameters;
  for (Json& parameter : shown) {
    parameter["shape"] = to_string(Shape(parameter["shape"].get<std::vector<Index>>()));
    parameter["zeros"] = fmt::format("{:.0f}%", parameter["zeros"].get<double>() * 100);
    parameter["histogram"] = spark_line(parameter["histogram"].get<std::vector<Index>>());
  }
  return table_of(shown, {{"parameter", "/path"},
                          {"shape", "/shape"},
                          {"norm", "/norm"},
                          {"mean", "/mean"},
                          {"std", "/std"},
                          {"min", "/min"},
                          {"max", "/max"},
                          {"zeros", "/zeros"},
                          {"histogram", "/histogram"}});
}

/// The first singular values of one product in each head, where there are any.
void add_spectra(Document& document, const std::string& title, const char* key) {
  constexpr std::size_t most = 8;
  Cells rows = {{title}};
  for (std::size_t i = 1; i <= most; ++i) rows[0].push_back(std::to_string(i));
  for (const Json& head : document.data["heads"]) {
    const auto values = head[key].get<std::vector<double>>();
    if (values.empty()) continue;
    rows.push_back(
        {fmt::format("{} head {}", head["path"].get<std::string>(), head["head"].dump())});
    for (std::size_t i = 0; i < most; ++i)
      rows.back().push_back(i < values.size() ? fmt::format("{:.4f}", values[i]) : "");
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

Document changes_since(LoadedModel& trained, const InspectOptions& options) try {
  const LoadedModel before = load_model(options.diff);
  Document document;
  Json& list = document.data["changes"] = Json::array();
  for (const Change& c : changes(chosen_parameters(trained, options), parameters(*before.network)))
    list.push_back(object({{"path", c.path},
                           {"norm", c.norm},
                           {"norm_before", c.norm_before},
                           {"distance", c.distance},
                           {"relative_change", c.relative()},
                           {"cosine", c.cosine}}));
  document.add_table(table_of(list, {{"parameter", "/path"},
                                     {"|w|", "/norm"},
                                     {"|w before|", "/norm_before"},
                                     {"|w - w before|", "/distance"},
                                     {"relative", "/relative_change"},
                                     {"cosine", "/cosine"}}));
  return document;
} catch (const ShapeError& error) {
  throw UserError(fmt::format("--diff {}: {}", options.diff, error.what()));
}

Document values_of(const std::vector<NamedParameter>& chosen) {
  Document document;
  Json& list = document.data["parameters"] = Json::array();
  for (const auto& [path, parameter] : chosen) list.push_back(to_json(path, parameter->value()));
  document.add_table(to_table(list));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto& [path, parameter] = chosen[i];
    list[i]["values"] = qkv::to_json(parameter->value());
    document.add_text("\n{}", chosen.size() > 1 ? path + "\n" : "");
    document.add_text("{}", values_text(parameter->value(), output_width()));
    document.add_picture({.title = path + ": blue below 0, red above",
                          .content = Weights{parameter->value()},
                          .needs_colours = true});
  }
  if (chosen.size() == 1) {
    Json values = list[0]["values"];
    document.data["values"] = std::move(values);
  }
  return document;
}

/// A line for each parameter, and the singular values of each head.
Document overview(const SavedModel& trained, const std::vector<NamedParameter>& chosen) {
  Document document;
  document.data = object({{"parameters", Json::array()}, {"heads", Json::array()}});
  for (const auto& [path, parameter] : chosen)
    document.data["parameters"].push_back(to_json(path, parameter->value()));
  for (const HeadSpectrum& s : head_spectra(*trained.network))
    document.data["heads"].push_back(object({{"path", s.path},
                                             {"head", s.head},
                                             {"qk_singular_values", s.qk},
                                             {"ov_singular_values", s.ov}}));
  document.add_table(to_table(document.data["parameters"]));
  document.add_text("{} parameters, after step {}\n", parameter_count(*trained.network),
                    trained.step);
  if (!trained.init.empty()) {
    document.data["init"] = trained.init;
    document.add_text("{}\n", trained.init);
  }
  add_spectra(document, "singular values of W_q W_k^T", "qk_singular_values");
  add_spectra(document, "singular values of W_v W_o", "ov_singular_values");
  return document;
}

Document inspect(const InspectOptions& options) {
  SavedModel trained = load_model(options.model);
  if (!options.diff.empty()) return changes_since(trained, options);
  const auto chosen = chosen_parameters(trained, options);
  return options.parameter.empty() ? overview(trained, chosen) : values_of(chosen);
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
