#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "train/config/config.h"

/// Helpers that the tests of configurations share.
namespace qkv::config_tests {

inline const std::vector<std::string> none;

/// The smallest valid configuration, on two lines: what is appended starts on line 3.
inline const std::string smallest = "name = \"bank\"\ntask.train = \"train.tsv\"\n";

inline Config parse(const std::string& more) {
  return parse_config(smallest + more, "c.toml");
}

inline std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// The error about the smallest configuration with `more` from line 3 on.
inline std::string error_of(const std::string& more) {
  return message_of([&] { parse(more); });
}

inline std::string override_error(const std::string& assignment) {
  Config config = parse("");
  return message_of([&] { apply_overrides(config, std::vector{assignment}); });
}

inline Config overridden(const std::vector<std::string>& assignments) {
  Config config = parse("");
  apply_overrides(config, assignments);
  return config;
}

inline std::string file_error(const std::string& text) {
  TempDir dir;
  const auto file = dir.write("c.toml", text);
  const std::string message = message_of([&] { read_config(file, none); });
  REQUIRE(message.starts_with(file.string()));
  return message.substr(dir.path().string().size() + 1);
}

inline ConfigFile read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  TempDir dir;
  return read_config(dir.write("c.toml", text), overrides);
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace qkv::config_tests
