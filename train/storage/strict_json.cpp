#include "train/storage/strict_json.h"

#include <set>
#include <string>
#include <vector>

#include "core/error.h"

namespace qkv {

nlohmann::json strict_json(std::string_view text, int deepest) {
  using Json = nlohmann::json;
  std::vector<std::set<std::string>> names;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start)
      require<FileError>(depth < deepest, "is nested deeper than {} levels", deepest);
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key)
      require<FileError>(names.back().insert(value.get<std::string>()).second, "names \"{}\" twice",
                         value.get<std::string>());
    return true;
  };
  Json json = Json::parse(text, check, false);
  require<FileError>(json.is_object(), "is not a JSON object");
  return json;
}

}  // namespace qkv
