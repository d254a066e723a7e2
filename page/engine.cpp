#include "page/engine.h"

#include <algorithm>
#include <array>
#include <exception>

namespace qkv::page {
namespace {

/// A call by its name in a request. The engine's parts each have a table of theirs.
template <class Part>
struct Call {
  std::string_view name;
  Json (Part::*run)(const Request&);
};

constexpr auto looking_calls = std::to_array<Call<Looking>>({{"load", &Looking::load},
                                                             {"untrained", &Looking::untrained},
                                                             {"read", &Looking::read},
                                                             {"predict", &Looking::predict},
                                                             {"attend", &Looking::attend},
                                                             {"explain", &Looking::explain},
                                                             {"embed", &Looking::embed},
                                                             {"nearest", &Looking::nearest},
                                                             {"ablate", &Looking::ablate},
                                                             {"generate", &Looking::generate},
                                                             {"map", &Looking::map},
                                                             {"probe", &Looking::probe}});
constexpr auto training_calls =
    std::to_array<Call<Training>>({{"train", &Training::train},
                                   {"step", &Training::step},
                                   {"evaluate", &Training::evaluate},
                                   {"parameters", &Training::parameters},
                                   {"export", &Training::export_model}});

/// The document of a call, if it is one of this part's.
template <class Part, std::size_t Count>
std::optional<Json> called(const std::array<Call<Part>, Count>& calls, Part& part,
                           const std::string& name, const Request& request) {
  const auto call = std::ranges::find(calls, name, &Call<Part>::name);
  if (call == calls.end()) return std::nullopt;
  return (part.*call->run)(request);
}

}  // namespace

Json Engine::document_of(const Request& request) {
  const std::string name = request.text("call");
  if (auto document = called(looking_calls, looking_, name, request)) return *std::move(document);
  if (auto document = called(training_calls, training_, name, request)) return *std::move(document);
  throw UserError(
      fmt::format("\"call\" of the request is \"{}\", which the engine does not have", name));
}

std::string Engine::call(std::string_view request) {
  try {
    return text_of(document_of(Request(request)));
  } catch (const std::exception& error) {
    return text_of(object({{"error", error.what()}}));
  }
}

}  // namespace qkv::page
