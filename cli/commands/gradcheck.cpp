#include <fmt/ranges.h>

#include "cli/commands/shared.h"
#include "inspect/model_gradient_check.h"

namespace qkv::commands {
namespace {

struct GradcheckOptions {
  std::string config;
};

/// The axes' indices of an element: "[3, 17]".
std::string index_text(Index element, const Shape& shape) {
  std::vector<Index> indices;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    indices.insert(indices.begin(), element % shape[axis]);
    element /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

Json to_json(const GradientCheck& check) {
  return object({{"path", check.parameter},
                 {"elements", check.shape.size()},
                 {"checked", check.checked},
                 {"error", check.error},
                 {"index", check.element},
                 {"analytic", check.analytic},
                 {"numeric", check.numeric}});
}

std::string verdict(const ModelGradientCheck& result) {
  const GradientCheck& worst = result.worst();
  return fmt::format(
      "{}: the worst error is {:.1e}, tolerance {:.0e}\n{}{}:\nanalytic {:.9g}, numeric {:.9g}\n",
      result.passes() ? "every gradient agrees" : "WRONG GRADIENT", worst.error, result.tolerance,
      worst.parameter, index_text(worst.element, worst.shape), worst.analytic, worst.numeric);
}

Document gradcheck(const GradcheckOptions& options) {
  Run run = start_run(read_config(options.config, {}).base);
  const ModelGradientCheck result = check_model_gradients(run);
  Document document;
  document.data = object({{"loss", result.loss},
                          {"examples", result.examples},
                          {"tolerance", result.tolerance},
                          {"passes", result.passes()},
                          {"parameters", Json::array()},
                          {"frozen", result.frozen}});
  Cells rows = {{"parameter", "elements checked", "worst error", "at"}};
  for (const GradientCheck& check : result.parameters) {
    document.data["parameters"].push_back(to_json(check));
    const Index size = check.shape.size();
    rows.push_back({check.parameter,
                    check.checked == size ? fmt::format("all {}", size)
                                          : fmt::format("{} of {}", check.checked, size),
                    fmt::format("{:.1e}", check.error), index_text(check.element, check.shape)});
  }
  for (const std::string& path : result.frozen) rows.push_back({path, "frozen", "", ""});
  const double dropout = run.config.model.dropout;
  document.add_text(
      "{} of the training examples in float64; {}\n"
      "initial parameters with noise of std {:g}, loss {:.4f}\n\n",
      result.examples,
      dropout > 0 ? fmt::format("dropout {:g}, the same mask each time", dropout) : "no dropout",
      gradient_check_noise, result.loss);
  document.add_table(std::move(rows));
  document.add_text("\n{}", verdict(result));
  document.exit_code = result.passes() ? 0 : 1;
  return document;
}

}  // namespace

Command gradcheck_command() {
  const auto o = std::make_shared<GradcheckOptions>();
  return {.name = "gradcheck",
          .summary = "Compare a config's gradients with central differences in float64",
          .options = {config_argument(o->config)},
          .run = [o](const Stream&) { return gradcheck(*o); }};
}

}  // namespace qkv::commands
