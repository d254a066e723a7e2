#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace qkv::page {

/// Bytes that go beside the JSON of a call, by name.
using Files = std::map<std::string, std::string>;
/// Removes and returns a file. Throws UserError when there is none of this name.
std::string taken(Files& files, const std::string& name);

/// A call of the engine, a JSON object: "call" names the function, the other fields are its
/// arguments. A field of null counts as missing. Reading a field throws UserError naming it where
/// it is missing, or of another type.
class Request {
 public:
  /// Throws UserError where the text is no JSON object, or is nested deep.
  explicit Request(std::string_view text);

  bool has(const char* field) const;
  std::string text(const char* field) const;
  Index integer(const char* field) const;
  /// Counts from 0 to below `count`.
  Index index(const char* field, Index count) const;
  /// False where it is missing.
  bool flag(const char* field) const;
  /// Lists of texts by name.
  std::map<std::string, std::vector<std::string>> lists(const char* field) const;
  /// An object, or a list of objects; without fields, or empty, where it is missing.
  Request request(const char* field) const;
  std::vector<Request> requests(const char* field) const;

  bool operator==(const Request&) const = default;

 private:
  using Fields = nlohmann::json;
  explicit Request(Fields fields);
  const Fields& at(const char* field, bool (Fields::*is_type)() const noexcept,
                   std::string_view type) const;

  Fields fields_;
};

}  // namespace qkv::page
