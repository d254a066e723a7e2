#include "cli/commands/report.h"
#include "train/config/config.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct PageOptions {
  std::string config;
  std::vector<std::string> set;
  std::string output;
};

Document page(const PageOptions& options) {
  const ConfigFile file = read_config(options.config, options.set);
  const fs::path output =
      options.output.empty() ? fs::path(file.base.name + ".html") : fs::path(options.output);
  return written_page(output, untrained_page(file, fs::path(options.config).parent_path()));
}

}  // namespace

Command page_command() {
  const auto o = std::make_shared<PageOptions>();
  return {.name = "page",
          .summary = "Make one HTML page that trains a config's models in the browser",
          .options = {config_argument(o->config),
                      set_option(o->set),
                      {"-o,--output FILE", &o->output, "File to write [NAME.html]"},
                      threads_option()},
          .run = [o](const Stream&) { return page(*o); }};
}

}  // namespace qkv::commands
