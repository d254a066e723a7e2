#include "inspect/documents/probes.h"

#include "inspect/probe_check.h"

namespace qkv::documents {

Json probes(const LoadedModel& model) try {
  Json views = Json::array();
  const auto finding_of = [](const std::string& after, const Finding& finding) {
    return Json{{"after", after}, {"measured", finding.measured}, {"holds", finding.holds}};
  };
  for (const auto& result : check_probes(model)) {
    const auto& [probe, trained, broken] = result;
    Json findings = Json::array({finding_of("", trained)});
    for (std::size_t i = 0; i < broken.size(); ++i)
      findings.push_back(finding_of(probe.broken_by[i], broken[i]));
    views.push_back({{"name", probe.name},
                     {"expect", probe.expect},
                     {"sentences", probe.sentences},
                     {"passes", result.passes()},
                     {"findings", findings}});
  }
  return views;
} catch (const UserError& error) {
  return Json::array({{{"error", error.what()}}});
}

}  // namespace qkv::documents
