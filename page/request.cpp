#include "page/request.h"

#include "core/error.h"
#include "train/storage/strict_json.h"

namespace qkv::page {
namespace {

nlohmann::json parsed(std::string_view text) try {
  constexpr int deepest = 8;
  return strict_json(text, deepest);
} catch (const FileError& error) {
  throw UserError(fmt::format("the request {}", error.what()));
}

}  // namespace

std::string taken(Files& files, const std::string& name) {
  auto node = files.extract(name);
  require<UserError>(!node.empty(), "there is no file \"{}\"; put it before the call", name);
  return std::move(node.mapped());
}

Request::Request(std::string_view text) : Request(parsed(text)) {}
Request::Request(Fields fields) : fields_(std::move(fields)) {}

bool Request::has(const char* field) const {
  const auto found = fields_.find(field);
  return found != fields_.end() && !found->is_null();
}

const Request::Fields& Request::at(const char* field, bool (Fields::*is_type)() const noexcept,
                                   std::string_view type) const {
  require<UserError>(has(field), "the request has no \"{}\"", field);
  const Fields& value = fields_[field];
  require<UserError>((value.*is_type)(), "\"{}\" of the request must be {}", field, type);
  return value;
}

std::string Request::text(const char* field) const {
  return at(field, &Fields::is_string, "a text").get<std::string>();
}

Index Request::integer(const char* field) const {
  return at(field, &Fields::is_number_integer, "an integer").get<Index>();
}

Index Request::index(const char* field, Index count) const {
  const Index i = integer(field);
  require<UserError>(0 <= i && i < count, "\"{}\" of the request is {}; it counts from 0 to {}",
                     field, i, count - 1);
  return i;
}

bool Request::flag(const char* field) const {
  return has(field) && at(field, &Fields::is_boolean, "true or false").get<bool>();
}

std::map<std::string, std::vector<std::string>> Request::lists(const char* field) const {
  std::map<std::string, std::vector<std::string>> lists;
  for (const auto& [name, list] : at(field, &Fields::is_object, "an object").items()) {
    require<UserError>(list.is_array(), "\"{}\" of \"{}\" must be a list of texts", name, field);
    for (const Fields& text : list) {
      require<UserError>(text.is_string(), "\"{}\" of \"{}\" must be a list of texts", name, field);
      lists[name].push_back(text.get<std::string>());
    }
  }
  return lists;
}

Request Request::request(const char* field) const {
  return Request(has(field) ? at(field, &Fields::is_object, "an object") : Fields::object());
}

std::vector<Request> Request::requests(const char* field) const {
  std::vector<Request> all;
  for (const Fields& fields : at(field, &Fields::is_array, "a list of objects")) {
    require<UserError>(fields.is_object(), "\"{}\" of the request must be a list of objects",
                       field);
    all.push_back(Request(fields));
  }
  return all;
}

}  // namespace qkv::page
