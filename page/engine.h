#pragma once

#include <string>
#include <string_view>

#include "page/looking.h"
#include "page/training.h"

namespace qkv::page {

/// What a page asks of the program: calls as JSON, in which models are loaded, looked at and
/// trained, with no files but those of a table in memory.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The document of a call {"call": name, ...}; {"error": message} where the call throws.
  std::string call(std::string_view request);
  /// What calls take and give besides their documents.
  Files& files() { return files_; }

 private:
  Json document_of(const Request& request);

  Files files_;
  Looking looking_{files_};
  Training training_{files_};
};

}  // namespace qkv::page
