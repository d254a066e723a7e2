#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/shape.h"

namespace qkv {
struct Document;
}  // namespace qkv

/// The command line as data. CLI11 parses it; its header takes four seconds to compile, so only
/// command_line.cpp includes it.
namespace qkv::commands {

/// The values that an option takes.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool excludes_low = false;
};
inline constexpr Range any_value = {}, not_negative = {.low = 0};
constexpr Range from_to(double low, double high) {
  return {low, high};
}

/// An option "--name" or "--name VALUE", or an argument "NAME". VALUE is what help calls the
/// option's value, by its type otherwise; completion (cli/manual.py) offers files for FILE, folders
/// for FOLDER, both for MODEL, and what stands around a |.
struct Option {
  /// Where the value goes, which must outlive the command line. A list takes all arguments that
  /// follow, or one value each time that its option is given.
  using Target = std::variant<std::string*, std::vector<std::string>*, Index*, std::size_t*,
                              double*, bool*, void (*)(int)>;

  std::string name;
  Target target;
  std::string help;
  Range range = any_value;
  bool is_required = false;
};
Option required(Option option);

/// Shows text while a command generates it, where the output format streams.
using Stream = std::function<void(std::string_view)>;

/// A subcommand of the program. Each has a flag for each output format, too.
struct Command {
  std::string name, summary;
  std::vector<Option> options;
  bool has_pictures = false;  ///< --svg writes them
  std::string footer = "";    ///< the end of its help
  std::function<Document(const Stream&)> run;
};

/// Runs the command that the user names, prints its document and returns the exit code. Throws
/// UserError for wrong use.
int run_program(const std::string& version, int argc, const char* const* argv);

}  // namespace qkv::commands
