#pragma once

#include <string>
#include <string_view>

#include "page/looking.h"
#include "page/training.h"

namespace qkv::page {

/// The program behind a page: it loads, inspects and trains models by calls as JSON, and has no
/// files but those of a table in memory.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The document of a call {"call": name, ...}; {"error": message} where the call throws.
  std::string call(std::string_view request);
  /// The byte strings that calls take and give besides their documents.
  Files& files() { return files_; }

 private:
  Json document_of(const Request& request);

  Files files_;
  Looking looking_{files_};
  Training training_{files_};
};

}  // namespace qkv::page
