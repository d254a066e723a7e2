#include "cli/commands/command_line.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <type_traits>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/document.h"
#include "cli/output_format.h"
#include "cli/standard_streams.h"
#include "cli/svg.h"
#include "core/error.h"
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

std::vector<std::string> unmarked(std::vector<std::string> arguments) {
  for (std::string& argument : arguments)
    if (argument.ends_with(bracket_mark)) argument.pop_back();
  return arguments;
}

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

/// "did you mean train?", or where to look when nothing known is near.
std::string hint(const std::string& unknown, const std::vector<std::string>& known,
                 std::string_view dashes, const std::string& program) {
  const auto nearest = nearest_name(unknown, known);
  return nearest ? fmt::format("did you mean {}{}?", dashes, *nearest)
                 : fmt::format("see {} --help", program);
}

/// "qkv train", or "qkv" where no command is given.
std::string called_name(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return program.get_name() + (chosen.empty() ? "" : " " + chosen.front()->get_name());
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
  const std::string called = called_name(program);
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

/// The condition on an option's values: ">= 0", "in [1, 256]", or nothing.
std::string text_of(const Range& range) {
  if (range.low == any_value.low) return "";
  if (range.high == any_value.high) return fmt::format(">= {}", range.low);
  return fmt::format("in {}{}, {}]", range.excludes_low ? "(" : "[", range.low, range.high);
}

/// Throws CLI::ValidationError when `text` is no such number or out of the option's range.
template <class T>
T number_of(const std::string& text, const std::string& flag, const Range& range) {
  T value{};
  const char* const end = text.data() + text.size();
  const bool is_number = [&] {
    if constexpr (std::is_integral_v<T>) {
      const auto [rest, error] = std::from_chars(text.data(), end, value);
      return error == std::errc() && rest == end;
    } else {
      const auto [rest, error] = fast_float::from_chars(text.data(), end, value);
      return error == std::errc() && rest == end;
    }
  }();
  const auto number = static_cast<double>(value);
  const bool fits =
      number <= range.high && (range.excludes_low ? number > range.low : number >= range.low);
  if (is_number && fits) return value;
  const std::string expected = is_number               ? text_of(range)
                               : std::is_integral_v<T> ? "an integer"
                                                       : "a number";
  throw CLI::ValidationError(flag, fmt::format("must be {}, got {}", expected, text));
}

void store(const Option& option, const std::string& flag, const std::vector<std::string>& given) {
  const std::string& text = given.front();
  std::visit(
      [&]<class T>(T target) {
        if constexpr (std::is_same_v<T, std::vector<std::string>*>)
          *target = given;
        else if constexpr (std::is_same_v<T, std::string*>)
          *target = text;
        else if constexpr (std::is_same_v<T, bool*>)
          *target = true;
        else if constexpr (std::is_same_v<T, void (*)(int)>)
          target(static_cast<int>(number_of<Index>(text, flag, option.range)));
        else
          *target = number_of<std::remove_pointer_t<T>>(text, flag, option.range);
      },
      option.target);
}

void declare(CLI::App& app, const Option& option) {
  static constexpr std::array<std::string_view, 7> types = {"TEXT",  "TEXT", "INT", "UINT",
                                                            "FLOAT", "",     "INT"};
  const std::size_t space = std::min(option.name.find(' '), option.name.size());
  const std::string flag = option.name.substr(0, space);
  if (std::holds_alternative<bool*>(option.target)) {
    app.add_flag_callback(
        flag, [option, flag] { store(option, flag, {""}); }, option.help);
    return;
  }
  CLI::Option* added = app.add_option(
      flag,
      [option, flag](const std::vector<std::string>& given) {
        store(option, flag, unmarked(given));
        return true;
      },
      option.help);
  const std::string value = space < option.name.size() ? option.name.substr(space + 1)
                                                       : std::string(types[option.target.index()]);
  const std::string condition = text_of(option.range);
  added->type_name(condition.empty() ? value : value + " " + condition);
  added->required(option.is_required);
  if (!std::holds_alternative<std::vector<std::string>*>(option.target)) return;
  added->expected(1, CLI::detail::expected_max_vector_size);
  added->allow_extra_args(!flag.starts_with('-'));
}

/// The chosen command and its options.
struct Choice {
  std::function<Document(const Stream&)> run = nullptr;
  const OutputFormat* format = &output_formats().front();
  std::string svg = "";  ///< the file for the pictures; empty: none
};

void declare(CLI::App& program, const Command& command, Choice& choice) {
  CLI::App* app = program.add_subcommand(command.name, command.summary);
  app->callback([&choice, run = command.run] { choice.run = run; });
  app->footer(command.footer);
  for (const Option& option : command.options) declare(*app, option);
  if (command.has_pictures)
    declare(*app, {"--svg FILE", &choice.svg, "File to write the pictures to as SVG, for papers"});
  std::vector<CLI::Option*> flags;
  for (const OutputFormat& format : output_formats()) {
    if (!format.flag) continue;
    CLI::Option* flag = app->add_flag_callback(
        format.flag, [&choice, &format] { choice.format = &format; }, format.help);
    for (CLI::Option* other : flags) flag->excludes(other);
    flags.push_back(flag);
  }
}

}  // namespace

Option required(Option option) {
  option.is_required = true;
  return option;
}

int run_program(const std::string& version, int argc, const char* const* argv) {
  CLI::App program("Train small attention models and see what they learned", "qkv");
  program.set_version_flag("--version", version);
  program.require_subcommand(1);
  program.formatter(std::make_shared<HelpFormatter>());
  Choice choice;
  for (const auto make : all_commands) declare(program, make(), choice);
  try {
    std::vector<std::string> arguments = marked_arguments(argc, argv);
    std::ranges::reverse(arguments);  // as CLI11 takes them
    program.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      std::ostringstream help;
      program.exit(error, help);
      print_result(help.str());
      flush_results();
      return 0;
    }
    const auto unknown = argc > 1 ? unknown_name(program, argv[1]) : std::nullopt;
    throw UserError(
        unknown.value_or(fmt::format("{}; see {} --help", error.what(), called_name(program))));
  }
  Document document = choice.run(choice.format->stream);
  if (!choice.svg.empty())
    write_pictures(document, "qkv " + program.get_subcommands().front()->get_name(), choice.svg);
  try {
    choice.format->print(document);
    flush_results();
  } catch (const ReaderGone&) {
    // The command has done its work all the same.
  }
  return document.exit_code;
}

}  // namespace qkv::commands
