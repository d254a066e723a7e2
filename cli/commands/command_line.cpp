#include "cli/commands/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>
#include <type_traits>
#include <vector>

#include "cli/document.h"
#include "cli/standard_streams.h"
#include "cli/svg/svg.h"
#include "core/error.h"
#include "core/shape.h"
#include "train/config/spelling.h"
#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

/// Ends arguments in brackets on their way through CLI11, which would read "[MASK] [MASK]" as a
/// list; no argument can hold it.
constexpr char bracket_mark = '\0';

std::vector<std::string> marked_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments)
    if (argument.starts_with('[') && argument.ends_with(']')) argument += bracket_mark;
  return arguments;
}

std::string unmarked(std::string argument) {
  if (argument.ends_with(bracket_mark)) argument.pop_back();
  return argument;
}
std::vector<std::string> unmarked(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) argument = unmarked(std::move(argument));
  return arguments;
}

/// Throws UserError when there is no picture, and what `write_result` throws.
void write_pictures(Document& document, const std::string& title, const std::string& file) {
  std::vector<Picture> pictures;
  for (const Document::Block& block : document.blocks)
    if (const auto* picture = std::get_if<Picture>(&block)) pictures.push_back(*picture);
  require<UserError>(!pictures.empty(), "--svg: this result has no picture");
  write_result(file, svg(title, pictures), {"a picture of qkv", begins_as_svg});
  document.add_note("wrote {}", file);
}

/// The --help of the program and of its commands. CLI11's own differs between its versions; man
/// pages and completions are made from this one (cli/manual.py).
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const auto arguments =
        app->get_options([](const CLI::Option* option) { return option->get_positional(); });
    const auto options =
        app->get_options([](const CLI::Option* option) { return option->nonpositional(); });
    const auto commands = app->get_subcommands([](const CLI::App*) { return true; });

    std::string help = fmt::format("{}\nUsage: {} [OPTIONS]", app->get_description(), name);
    for (const CLI::Option* argument : arguments) {
      const std::string shown = argument->get_name(true) + (is_list(argument) ? "..." : "");
      help += argument->get_required() ? " " + shown : fmt::format(" [{}]", shown);
    }
    help += commands.empty() ? "\n" : " SUBCOMMAND\n";

    if (!arguments.empty()) help += "\nPositionals:\n";
    for (const CLI::Option* argument : arguments)
      help += row(argument->get_name(true), argument->get_description());
    help += "\nOptions:\n";
    for (const CLI::Option* option : options)
      help += row(option->get_name(false, true) + value_of(option), option->get_description());
    if (!commands.empty()) help += "\nSubcommands:\n";
    for (const CLI::App* command : commands)
      help += row(command->get_name(), command->get_description());

    const std::string footer = app->get_footer();
    return help + (footer.empty() ? "\n" : fmt::format("\n{}\n", footer));
  }

 private:
  static bool is_list(const CLI::Option* option) {
    return option->get_expected_max() == CLI::detail::expected_max_vector_size;
  }
  /// An option's value, "..." where it may be given several times, and whether it is required.
  static std::string value_of(const CLI::Option* option) {
    if (option->get_type_size() == 0) return "";
    return fmt::format(" {}{}{}", option->get_type_name(), is_list(option) ? " ..." : "",
                       option->get_required() ? " (required)" : "");
  }
  /// A term and its explanation, which begins on the next line where the term is too long.
  static std::string row(const std::string& term, const std::string& text) {
    constexpr std::size_t column = 30;
    const std::string indented = "  " + term;
    if (text.empty()) return indented + "\n";
    if (indented.size() < column) return fmt::format("{:<{}}{}\n", indented, column, text);
    return fmt::format("{}\n{:<{}}{}\n", indented, "", column, text);
  }
};

/// Splits "--name VALUE" into its name and what help calls its value; the latter may be empty.
std::pair<std::string, std::string> name_and_value(const std::string& declared) {
  const std::size_t space = declared.find(' ');
  if (space == std::string::npos) return {declared, ""};
  return {declared.substr(0, space), declared.substr(space + 1)};
}

/// "did you mean train?", or where to look when nothing known is near.
std::string hint(const std::string& unknown, const std::vector<std::string>& known,
                 std::string_view dashes, const std::string& program) {
  const auto nearest = nearest_name(unknown, known);
  return nearest ? fmt::format("did you mean {}{}?", dashes, *nearest)
                 : fmt::format("see {} --help", program);
}

/// The error for an unknown option or command, with the nearest known name; none when all are
/// known.
std::optional<std::string> unknown_name(const CLI::App& program, const std::string& first) {
  const auto chosen = program.get_subcommands();
  if (chosen.empty() && !first.starts_with('-')) {
    std::vector<std::string> commands;
    for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
      commands.push_back(command->get_name());
    return fmt::format("unknown command {}; {}", first,
                       hint(first, commands, "", program.get_name()));
  }
  const CLI::App& command = chosen.empty() ? program : *chosen.front();
  const std::string called =
      chosen.empty() ? program.get_name() : program.get_name() + " " + command.get_name();
  for (const std::string& argument : program.remaining(true)) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--")) continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& other : option->get_lnames()) known.push_back(other);
    return fmt::format("unknown option {} of {}; {}", name, called,
                       hint(name.substr(2), known, "--", called));
  }
  return std::nullopt;
}

/// `condition`: what help says of the check, behind the name of the value.
Option checked(CLI::Option* option, CLI::Validator check, const std::string& condition) {
  option->type_name(option->get_type_name() + " " + condition);
  return Option(option->check(check.description("")));
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::not_negative() {
  return checked(option_, CLI::NonNegativeNumber, ">= 0");
}

Option Option::between(int low, int high) {
  return checked(option_, CLI::Range(low, high), fmt::format("in [{}, {}]", low, high));
}

Option Option::between(double low, double high) {
  return checked(option_, CLI::Range(low, high), fmt::format("in [{}, {}]", low, high));
}

Option Option::above_up_to(double low, double high) {
  const std::string range = fmt::format("in ({}, {}]", low, high);
  const CLI::Validator check(
      [=](const std::string& text) {
        double value = low;
        const bool is_right =
            CLI::detail::lexical_cast(text, value) && value > low && value <= high;
        return is_right ? "" : fmt::format("must be {}, got {}", range, text);
      },
      "");
  return checked(option_, check, range);
}

Option Option::repeated() {
  option_->allow_extra_args(false);
  return *this;
}

template <class T>
Option Command::add_option(const std::string& name, T& value, const std::string& help) {
  const auto [flags, value_name] = name_and_value(name);
  CLI::Option* option = nullptr;
  if constexpr (std::is_arithmetic_v<T>)
    option = app_->add_option(flags, value, help);
  else
    option = app_->add_option_function<T>(
        flags, [&value](const T& given) { value = unmarked(given); }, help);
  if (!value_name.empty()) option->type_name(value_name);
  return Option(option);
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, Index&, const std::string&);
template Option Command::add_option(const std::string&, std::size_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);

Option Command::add_option(const std::string& name, void (*set)(int), const std::string& help) {
  return Option(app_->add_option_function<int>(name, set, help));
}

void Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}

void Command::add_svg_option() {
  add_option("--svg FILE", svg_, "File to write the pictures to as SVG, for papers");
}

void Command::footer(std::function<std::string()> text) {
  app_->footer(std::move(text));
}

CommandLine::CommandLine(const std::string& name, const std::string& summary,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

void CommandLine::add(const std::string& name, const std::string& summary,
                      const std::function<void(Command&)>& declare,
                      std::function<Document(const Stream&)> action) {
  CLI::App* app = app_->add_subcommand(name, summary);
  app->callback([this, action = std::move(action)] { chosen_ = action; });
  Command command(app, svg_);
  declare(command);
  std::vector<CLI::Option*> flags;
  for (const OutputFormat& format : output_formats()) {
    if (!format.flag) continue;
    CLI::Option* flag = app->add_flag_callback(
        format.flag, [this, &format] { format_ = &format; }, format.help);
    for (CLI::Option* other : flags) flag->excludes(other);
    flags.push_back(flag);
  }
}

int CommandLine::run(int argc, const char* const* argv) {
  try {
    std::vector<std::string> arguments = marked_arguments(argc, argv);
    std::ranges::reverse(arguments);  // as CLI11 takes them
    app_->parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      std::ostringstream help;
      app_->exit(error, help);
      print_result(help.str());
      flush_results();
      return 0;
    }
    const auto unknown = argc > 1 ? unknown_name(*app_, argv[1]) : std::nullopt;
    throw UserError(unknown.value_or(error.what()));
  }
  Document document = chosen_(format_->stream);
  if (!svg_.empty())
    write_pictures(document, "qkv " + app_->get_subcommands().front()->get_name(), svg_);
  try {
    format_->print(document);
    flush_results();
  } catch (const ReaderGone&) {
    // The command has done its work all the same.
  }
  return document.exit_code;
}

}  // namespace qkv::commands
