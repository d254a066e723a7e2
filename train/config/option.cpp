#include "train/config/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/memory_limit.h"

namespace qkv {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// The shortest TOML float that reads back as `number`.
std::string toml_float(double number) {
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string must_be(std::string_view wanted, const Value& value) {
  return fmt::format("must be {}, got {}", wanted, describe(value));
}

struct DescribeValue {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("the integer {}", value); }
  std::string operator()(double value) const { return "the number " + toml_float(value); }
  std::string operator()(const std::string& value) const { return "the string " + shown(value); }
  std::string operator()(const TextList&) const { return "an array"; }
  std::string operator()(TableValue) const { return "a table"; }
  std::string operator()(OtherValue value) const { return std::string(value.what); }
};

Option option_of(std::string_view key, std::string_view help, std::string type,
                 std::function<std::optional<std::string>(const Value&)> assign,
                 std::function<std::string()> print, bool takes_text = false) {
  return {.key = key,
          .help = std::string(help),
          .type = std::move(type),
          .takes_text = takes_text,
          .assign = std::move(assign),
          .print = std::move(print)};
}

std::optional<std::string> text_error(std::string_view text) {
  constexpr std::size_t longest = 4096;  // as paths
  if (text.size() > longest) return fmt::format("must not be longer than {} bytes", longest);
  if (std::ranges::any_of(text, is_control)) return "must not contain control characters";
  return std::nullopt;
}

template <class Check>
Option text_option(std::string_view key, std::string& member, Check check, std::string_view help) {
  auto assign = [&member, check](const Value& value) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return must_be("text in quotes", value);
    if (auto found = check(*text)) return fmt::format("{}, got {}", *found, shown(*text));
    member = *text;
    return std::nullopt;
  };
  return option_of(
      key, help, "text", assign, [&member] { return toml_string(member); }, true);
}

template <class Integer>
Option integer_option(std::string_view key, Integer& member, Bounds bounds, std::string_view help) {
  auto assign = [&member, bounds](const Value& value) -> std::optional<std::string> {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (!number) return must_be("an integer", value);
    if (!bounds.contain(static_cast<double>(*number)) || !std::in_range<Integer>(*number))
      return fmt::format("must be {}, got {}", bounds.text(), *number);
    member = static_cast<Integer>(*number);
    return std::nullopt;
  };
  return option_of(key, help, "integer " + bounds.text(), assign,
                   [&member] { return fmt::format("{}", member); });
}

}  // namespace

std::string describe(const Value& value) {
  return std::visit(DescribeValue{}, value);
}

std::string one_line(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (is_control(c))
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result;
}

std::string toml_string(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + one_line(escaped) + '"';
}

std::string shown(std::string_view text) {
  std::size_t longest = 80;
  if (text.size() <= longest) return toml_string(text);
  while (is_continuation(text[longest])) --longest;
  return toml_string(text.substr(0, longest)) + "...";
}

bool Bounds::contain(double value) const {
  return (low_is_open ? value > low : value >= low) &&
         (high_is_open ? value < high : value <= high);
}

std::string Bounds::text() const {
  if (std::isinf(high)) return fmt::format("{} {}", low_is_open ? ">" : ">=", low);
  if (low_is_open || high_is_open)
    return fmt::format("in {}{}, {}{}", low_is_open ? '(' : '[', low, high,
                       high_is_open ? ')' : ']');
  return fmt::format("from {} to {}", low, high);
}

std::optional<std::string> name_error(std::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name.size() > 200) return "must not be longer than 200 bytes";
  if (name.find_first_of("/\\") != name.npos)
    return "must not contain / or \\, as it names a folder";
  if (name.front() == '.' || name.front() == ' ' || name.back() == ' ')
    return "must not begin with a dot or a space, or end with a space";
  return text_error(name);
}

Option option(std::string_view key, std::string& member, std::string_view help) {
  return text_option(key, member, text_error, help);
}

Option path_option(std::string_view key, std::string& member, std::string_view help) {
  Option result = option(key, member, help);
  result.type = "path";
  result.path = &member;
  return result;
}

Option memory_option(std::string_view key, std::string& member, std::string_view help) {
  const auto error = [](std::string_view text) -> std::optional<std::string> {
    if (text.empty() || parse_memory_size(text)) return std::nullopt;
    return "must be a size of memory as \"4GB\" or \"512MiB\"";
  };
  Option result = text_option(key, member, error, help);
  result.type = "size";
  return result;
}

Option name_option(std::string_view key, std::string& member, std::string_view help) {
  return text_option(key, member, name_error, help);
}

Option option(std::string_view key, TextList& member, std::string_view help) {
  auto assign = [&member](const Value& value) -> std::optional<std::string> {
    const auto* texts = std::get_if<TextList>(&value);
    if (!texts) return must_be("an array of texts, as in [\"a\", \"b\"]", value);
    for (const std::string& text : *texts)
      if (auto found = text_error(text)) return fmt::format("{}, got {}", *found, shown(text));
    member = *texts;
    return std::nullopt;
  };
  auto print = [&member] {
    TextList quoted;
    for (const std::string& text : member) quoted.push_back(toml_string(text));
    return fmt::format("[{}]", fmt::join(quoted, ", "));
  };
  return option_of(key, help, "texts", assign, print);
}

Option option(std::string_view key, bool& member, std::string_view help) {
  auto assign = [&member](const Value& value) -> std::optional<std::string> {
    const auto* flag = std::get_if<bool>(&value);
    if (!flag) return must_be("true or false", value);
    member = *flag;
    return std::nullopt;
  };
  return option_of(key, help, "true | false", assign,
                   [&member] { return std::string(member ? "true" : "false"); });
}

Option option(std::string_view key, std::optional<bool>& member, std::string_view help) {
  auto assign = [&member](const Value& value) -> std::optional<std::string> {
    const auto* flag = std::get_if<bool>(&value);
    const auto* text = std::get_if<std::string>(&value);
    if (!flag && (!text || *text != "auto")) return must_be("true, false or \"auto\"", value);
    member = flag ? std::optional(*flag) : std::nullopt;
    return std::nullopt;
  };
  return option_of(key, help, "true | false | auto", assign, [&member] {
    return std::string(!member ? "\"auto\"" : *member ? "true" : "false");
  });
}

Option option(std::string_view key, double& member, Bounds bounds, std::string_view help) {
  auto assign = [&member, bounds](const Value& value) -> std::optional<std::string> {
    const auto* integer = std::get_if<std::int64_t>(&value);
    const auto* real = std::get_if<double>(&value);
    if (!integer && !real) return must_be("a number", value);
    const double number = real ? *real : static_cast<double>(*integer);
    if (!std::isfinite(number)) return fmt::format("must be a finite number, got {}", number);
    if (!bounds.contain(number)) return fmt::format("must be {}, got {}", bounds.text(), number);
    member = number;
    return std::nullopt;
  };
  return option_of(key, help, "number " + bounds.text(), assign,
                   [&member] { return toml_float(member); });
}

Option option(std::string_view key, std::int64_t& member, Bounds bounds, std::string_view help) {
  return integer_option(key, member, bounds, help);
}

Option option(std::string_view key, std::uint64_t& member, Bounds bounds, std::string_view help) {
  return integer_option(key, member, bounds, help);
}

Option choice_option(std::string_view key, std::vector<std::string_view> names,
                     std::function<void(std::size_t)> store, std::function<std::size_t()> current,
                     std::string_view help) {
  auto assign = [names,
                 store = std::move(store)](const Value& value) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&value);
    const auto name = text ? std::ranges::find(names, *text) : names.end();
    if (name == names.end()) {
      const std::string wanted = fmt::format("\"{}\"", fmt::join(names, "\", \""));
      return must_be(names.size() == 1 ? wanted : "one of " + wanted, value);
    }
    store(static_cast<std::size_t>(name - names.begin()));
    return std::nullopt;
  };
  return option_of(
      key, help, fmt::format("{}", fmt::join(names, " | ")), assign,
      [names, current = std::move(current)] { return toml_string(names.at(current())); }, true);
}

}  // namespace qkv
