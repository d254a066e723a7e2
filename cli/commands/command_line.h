#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/output_format.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// Declares the command line. CLI11 parses it; its header takes four seconds to
/// compile, so only command_line.cpp includes it.
namespace qkv::commands {

/// An option or argument that was just declared. Values that break a condition are wrong use.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required();
  Option not_negative();
  Option between(int low, int high);
  Option between(double low, double high);
  /// In (low, high].
  Option above_up_to(double low, double high);
  /// May be given several times, with one value each time.
  Option repeated();

 private:
  CLI::Option* option_;
};

/// A subcommand.
class Command {
 public:
  /// `svg`: where the file that --svg names is stored.
  Command(CLI::App* app, std::string& svg) : app_(app), svg_(svg) {}
  /// Declares an option "--name", "--name VALUE" or an argument "NAME" that is stored in `value`,
  /// which must outlive the command line. VALUE is what help calls the option's value, by its type
  /// otherwise; completion (cli/manual.py) offers files for FILE, folders for FOLDER, both for
  /// MODEL, and what stands around a |. T: std::string, std::vector<std::string>, Index,
  /// std::size_t or double.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& help);
  /// The same for an integer that is handed to `set`.
  Option add_option(const std::string& name, void (*set)(int), const std::string& help);
  void add_flag(const std::string& name, bool& value, const std::string& help);
  /// Declares --svg, which writes the pictures of the command's document.
  void add_svg_option();
  /// What the help ends with.
  void footer(std::function<std::string()> text);

 private:
  CLI::App* app_;
  std::string& svg_;
};

/// Shows text while a command generates it, where the output format streams.
using Stream = std::function<void(std::string_view)>;

/// The program's subcommands, of which the user names one.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary, const std::string& version);
  ~CommandLine();

  /// Adds a subcommand with the options that `declare` adds to it, and a flag for each output
  /// format; `action` carries it out.
  void add(const std::string& name, const std::string& summary,
           const std::function<void(Command&)>& declare,
           std::function<Document(const Stream&)> action);
  /// Runs the command that the user named, prints its document and returns the exit code. Throws
  /// UserError for wrong use.
  int run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<Document(const Stream&)> chosen_;
  const OutputFormat* format_ = &output_formats().front();
  std::string svg_;  ///< the file for the pictures; empty: none
};

/// Adds a subcommand whose options live in an `Options`, filled by `declare(Command&, Options&)`,
/// and which `run(const Options&)` or `run(const Options&, const Stream&)` carries out.
template <class Options, class Declare, class Run>
void add_command(CommandLine& program, const std::string& name, const std::string& summary,
                 Declare declare, Run run) {
  const auto options = std::make_shared<Options>();
  program.add(
      name, summary, [&](Command& command) { declare(command, *options); },
      [options, run](const Stream& stream) {
        if constexpr (std::is_invocable_v<Run, const Options&>)
          return run(*options);
        else
          return run(*options, stream);
      });
}

}  // namespace qkv::commands
