#include "inspect/documents/explain.h"

namespace qkv::documents {
namespace {

Json to_json(const AttentionSteps& module) {
  Json heads = Json::array();
  for (const HeadSteps& head : module.heads)
    heads.push_back(object({{"q", qkv::to_json(head.q)},
                            {"k", qkv::to_json(head.k)},
                            {"v", qkv::to_json(head.v)},
                            {"scores", qkv::to_json(head.scores)},
                            {"scaled", qkv::to_json(head.scaled)},
                            {"weights", qkv::to_json(head.weights)},
                            {"mixed", qkv::to_json(head.mixed)}}));
  return object({{"path", module.path},
                 {"scale", module.scale},
                 {"mask", qkv::to_json(module.mask)},
                 {"heads", heads}});
}

/// Every parameter but the embedding table, whose rows in use are the static vectors; that too
/// where it serves as the output layer.
Json used_parameters(Network& network) {
  Json result = Json::object();
  for (const auto& [path, parameter] : parameters(network))
    if (parameter->role() != Role::embedding || !network.head)
      result[path] = qkv::to_json(parameter->value());
  return result;
}

Json to_json(const std::vector<LensState>& lens) {
  Json list = Json::array();
  for (const auto& [label, scores] : lens)
    list.push_back(object({{"after", label},
                           {"logits", qkv::to_json(scores.logits)},
                           {"probabilities", qkv::to_json(softmax(scores.logits))}}));
  return list;
}

Json to_json(const LogitAttribution& attribution, const std::vector<std::string>& choices) {
  Json parts = Json::array();
  for (const auto& [label, component, logit, difference] : attribution.parts) {
    parts.push_back(object({{"label", label}, {"logit", logit}, {"difference", difference}}));
    if (component) parts.back()["component"] = qkv::to_json(*component);
  }
  return object({{"answer", choices[static_cast<std::size_t>(attribution.answer)]},
                 {"runner_up", choices[static_cast<std::size_t>(attribution.runner_up)]},
                 {"parts", parts}});
}

Json steps_of(const Recorder& recorder) {
  Json steps = Json::array();
  for (const Recorder::Record& record : recorder.all())
    if (record.value.rank() == 3 && record.name != "mask")
      steps.push_back(object({{"path", record.path},
                              {"symbol", record.formula.symbol},
                              {"formula", record.formula.formula},
                              {"values", qkv::to_json(record.value)[0]}}));
  return steps;
}

}  // namespace

Json explain(const LoadedModel& trained, const Explanation& explanation,
             const std::vector<LensState>& lens, const std::optional<LogitAttribution>& attribution,
             Parameters parameters) {
  Json attention = Json::array();
  for (const AttentionSteps& module : attention_steps(explanation.recorder))
    attention.push_back(to_json(module));
  Json json = object({{"tokens", explanation.sentence.words},
                      {"ids", explanation.sentence.ids},
                      {"index", explanation.index},
                      {"steps", steps_of(explanation.recorder)},
                      {"attention", attention},
                      {"labels", explanation.scores.choices},
                      {"logits", qkv::to_json(explanation.scores.logits)},
                      {"probabilities", qkv::to_json(explanation.probabilities)}});
  if (parameters == Parameters::shown) json["parameters"] = used_parameters(*trained.network);
  if (const auto& written = explanation.sentence.written) {
    json["inputs"] = written->inputs;
    json["outputs"] = written->outputs;
  }
  if (!lens.empty()) json["logit_lens"] = to_json(lens);
  if (attribution) json["attribution"] = to_json(*attribution, explanation.scores.choices);
  return json;
}

}  // namespace qkv::documents
