#include "page/looking.h"

#include <algorithm>
#include <cstring>

#include "inspect/documents/ablate.h"
#include "inspect/documents/attend.h"
#include "inspect/documents/embed.h"
#include "inspect/documents/explain.h"
#include "inspect/documents/generate.h"
#include "inspect/documents/predict.h"
#include "inspect/documents/probes.h"
#include "inspect/loss_gradients.h"
#include "train/config/task_kinds.h"

namespace qkv::page {
namespace {

/// Gives a network's parameters the values of a file, float32 of all one after the other.
void assign_parameters(Network& network, std::string_view bytes) {
  const auto all = parameters(network);
  std::size_t count = 0;
  for (const auto& [path, parameter] : all)
    count += static_cast<std::size_t>(parameter->value().size());
  require<UserError>(bytes.size() == count * sizeof(float),
                     "the file \"parameters\" has {} bytes; the {} parameters of the model have {}",
                     bytes.size(), count, count * sizeof(float));
  for (const auto& [path, parameter] : all) {
    std::vector<float> values(static_cast<std::size_t>(parameter->value().size()));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    bytes.remove_prefix(values.size() * sizeof(float));
    parameter->assign(Tensor::from(values, parameter->shape()));
  }
}

/// The values of all parameters, as `assign_parameters` takes them.
std::string values_of(Network& network) {
  std::string bytes;
  for (const auto& [path, parameter] : parameters(network)) {
    const auto values = std::as_bytes(parameter->value().data<float>());
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
  }
  return bytes;
}

LoadedModel described_model(const Request& request) {
  return fresh_model(parse_config(request.text("config"), "page"), request.lists("vocabulary"));
}

bool has_queries(Network& network) {
  return std::ranges::any_of(parameters(network), [](const NamedParameter& named) {
    return named.parameter->role() == Role::query;
  });
}

/// Whether a request's changes make another model; a component that is zero does not.
bool intervenes(const Request& changes) {
  return changes.flag("without_positions") || changes.flag("shuffled") || changes.flag("uniform");
}

/// The model after the interventions of a request's changes, in the order in which the model
/// computes; none: the model itself.
std::optional<LoadedModel> intervened_as(const Request& changes, const LoadedModel& model) {
  std::optional<LoadedModel> result;
  const auto intervene = [&](Intervention intervention) {
    result = intervened(result ? *result : model, intervention);
  };
  if (changes.flag("without_positions")) intervene(Intervention::without_positions);
  if (changes.flag("shuffled") && has_queries(*model.network))
    intervene(Intervention::shuffled_queries);
  if (changes.flag("uniform")) intervene(Intervention::uniform_attention);
  return result;
}

/// Zero in place of the component that a request's changes name.
std::vector<Replacement> replacements_of(const Request& changes, const LoadedModel& model) {
  if (!changes.has("off")) return {};
  const std::string off = changes.text("off");
  std::vector<Replacement> replaced;
  for (const Component& component : components(*model.network))
    if (component.id == off)
      replaced.push_back({component.activation, component.mask, Tensor::scalar(0)});
  return replaced;
}

/// The words of a sentence that are asked about, with `asked` where any may be; one without a
/// number is the whole sentence.
std::vector<std::optional<Index>> asked_words(const LoadedModel& model, const Sentence& sentence,
                                              std::optional<Index> asked) {
  if (!model.task->has_choices(sentence)) return {};
  std::vector<std::optional<Index>> words(sentence.targets.begin(), sentence.targets.end());
  const bool any = row_of(task_kinds(), model.config.task.kind).traits.answers_about_words;
  if (any && asked && std::ranges::find(words, asked) == words.end()) words.push_back(asked);
  if (!any && words.empty()) words.emplace_back();
  return words;
}

/// A text as a model reads it.
Sentence sentence_of(const Request& request, const LoadedModel& model) {
  return model.task->read(request.text("text"));
}

/// The sentence, with the output that the model writes for it, if it writes any.
Sentence answered(const Request& request, const LoadedModel& model, const Hook& hook) {
  Sentence sentence = sentence_of(request, model);
  Context context({.hook = &hook});
  sentence.written = model.task->write(*model.network, sentence, "", context);
  return sentence;
}

/// The token that a request names.
std::size_t token_in(const Request& request, const Sentence& sentence) {
  return static_cast<std::size_t>(request.index("index", std::ssize(sentence.words)));
}

/// The loss of an answer in a pass with both hooks; the second may be null.
Evaluation evaluated(const LoadedModel& model, const LabelledText& text, const Hook& first,
                     const Hook* second) {
  const NoGrad no_grad;
  const Hook both = [&](const Module& module, std::string_view name, Tensor value) {
    value = first(module, name, std::move(value));
    return second ? (*second)(module, name, std::move(value)) : value;
  };
  Evaluation evaluation;
  evaluation.count = 1;
  evaluation.loss = answer_loss(model, text, both).item();
  return evaluation;
}

/// Vectors in their two principal components.
Json in_two_dimensions(const std::vector<WordVector>& words,
                       std::vector<double> WordVector::*vector) {
  const Tensor rows = stacked(words, vector);
  const auto components = principal_components(rows, 2);
  return object({{"share", components.variance_fraction}, {"points", in_plane(components, rows)}});
}

}  // namespace

Looking::Model& Looking::named(const std::string& name) {
  const auto found = models_.find(name);
  require<UserError>(found != models_.end(), "there is no model \"{}\"; load it before the call",
                     name);
  return found->second;
}

Looking::View Looking::model_of(const Request& request) {
  Model& model = named(request.text("model"));
  const Request changes = request.request("changes");
  if (!intervenes(changes)) return {model.loaded, replacements_of(changes, model.loaded)};
  if (model.changes != changes) {
    model.changes.reset();  // until all of them are made
    model.intervened = intervened_as(changes, model.loaded);
    model.changes = changes;
  }
  const LoadedModel& changed = model.intervened ? *model.intervened : model.loaded;
  return {changed, replacements_of(changes, changed)};
}

Json Looking::load(const Request& request) {
  const std::string name = request.text("model");
  std::optional<LoadedModel> fresh;
  if (request.has("config")) fresh = described_model(request);
  LoadedModel& model = fresh ? *fresh : named(name).loaded;
  assign_parameters(*model.network, taken(files_, "parameters"));
  Json shapes = shapes_of(*model.network);
  if (fresh)
    models_.insert_or_assign(name, Model{*std::move(fresh)});
  else
    named(name).changes.reset();
  return object({{"parameters", std::move(shapes)}});
}

Json Looking::untrained(const Request& request) {
  files_["parameters"] = values_of(*described_model(request).network);
  return Json::object();
}

Json Looking::read(const Request& request) {
  const LoadedModel& model = model_of(request).model;
  const std::string text = request.text("text");
  const Sentence sentence = model.task->read(text);
  const std::string refusal = model.task->refusal(sentence, text);
  const auto words = documents::words_of(text, model.task->tokenizer());
  Json unknown = Json::array(), ids = Json::array();
  for (std::size_t i = 0; i < sentence.ids.size(); ++i)
    unknown.push_back(model.task->vocabulary().is_unknown(sentence.ids[i]) &&
                      sentence.words[i] != mask_text);
  for (const Component& component : components(*model.network)) ids.push_back(component.id);
  return object({{"tokens", sentence.words},
                 {"ids", sentence.ids},
                 {"targets", sentence.targets},
                 {"unknown", unknown},
                 {"refusal", refusal.empty() ? Json() : Json(refusal)},
                 {"words", words.count},
                 {"unknown_words", words.unknown},
                 {"components", ids}});
}

Json Looking::predict(const Request& request) {
  const View view = model_of(request);
  const LoadedModel& model = view.model;
  const std::string text = request.text("text");
  const ReadText read{text, model.task->read(text)};
  const Sentence& sentence = read.sentence;
  const Hook hook = hook_of(view.off);
  Context context({.hook = &hook});
  std::vector<Prediction> predictions;
  if (row_of(task_kinds(), model.config.task.kind).traits.has_source_and_target) {
    predictions = model.task->predict(*model.network, text, context);
  } else {
    std::optional<Index> asked;
    if (request.has("index")) asked = request.index("index", std::ssize(sentence.words));
    std::vector<AnswerTarget> targets;
    for (const auto& word : asked_words(model, sentence, asked)) targets.push_back({&read, word});
    predictions = model.task->answers(*model.network, targets, context);
  }
  const auto words = documents::words_of(text, model.task->tokenizer());
  Json list = Json::array();
  for (const Prediction& prediction : predictions)
    list.push_back(documents::prediction(prediction, sentence, words));
  return object({{"predictions", list}});
}

Json Looking::attend(const Request& request) {
  const View view = model_of(request);
  const LoadedModel& model = view.model;
  const Sentence sentence = answered(request, model, hook_of(view.off));
  return documents::attend(
      documents::attention_in(model, sentence, recorded(model, sentence, view.off)));
}

Json Looking::explain(const Request& request) {
  const View view = model_of(request);
  const LoadedModel& model = view.model;
  const bool is_output = request.flag("output");
  const Sentence sentence =
      is_output ? answered(request, model, hook_of(view.off)) : sentence_of(request, model);
  require<UserError>(!is_output || sentence.written,
                     "\"output\" of the request: the model writes no text");
  const auto& tokens = is_output ? sentence.written->inputs : sentence.words;
  const Explanation explanation =
      qkv::explain(model, sentence, request.index("index", std::ssize(tokens)), view.off);
  using documents::Parameters;
  return documents::explain(model, explanation, {}, {},
                            request.flag("parameters") ? Parameters::shown : Parameters::left_out);
}

Json Looking::embed(const Request& request) {
  const View view = model_of(request);
  const Sentence sentence = sentence_of(request, view.model);
  const Index index =
      request.has("index") ? request.index("index", std::ssize(sentence.words)) : -1;
  const WordVector word = word_vector(view.model, sentence, index, view.off);
  return object({{"sentences", Json::array({documents::vectors(word)})}});
}

Json Looking::nearest(const Request& request) {
  const LoadedModel& model = model_of(request).model;
  const Sentence sentence = sentence_of(request, model);
  const std::int32_t id = sentence.ids[token_in(request, sentence)];
  const Index most = model.task->vocabulary().size(), count = request.integer("count");
  return documents::nearest(
      nearest_words(model, id, static_cast<std::size_t>(std::clamp<Index>(count, 0, most))));
}

Json Looking::ablate(const Request& request) {
  const View view = model_of(request);
  const LoadedModel& model = view.model;
  const Hook hook = hook_of(view.off);
  LabelledText text{.sentence = answered(request, model, hook)};
  if (request.has("index")) text.index = request.index("index", std::ssize(text.sentence.words));
  const Tensor logits =
      scores_after(model, text.sentence, std::max<Index>(text.index, 0), view.off).logits;
  if (logits) text.answer = topk(logits, 1).indices.data()[0];
  const Evaluation whole = evaluated(model, text, hook, nullptr);
  const Ablation ablation(model, [&](const EvaluationOptions& options) {
    return evaluated(model, text, hook, options.hook);
  });
  constexpr AblationKind kinds[] = {AblationKind::zero};
  ReadCallback silent;
  return object({{"whole", object({{"loss", whole.loss}})},
                 {"components", documents::each_ablated(ablation, whole, kinds, silent)}});
}

Json Looking::generate(const Request& request) {
  const View view = model_of(request);
  const LoadedModel& model = view.model;
  ReadCallback silent;
  return documents::generate(model, read_prompt(model, request.text("text"), silent),
                             request.integer("tokens"), {.temperature = 0}, view.off,
                             [](std::string_view) {});
}

Json Looking::map(const Request& request) {
  const View view = model_of(request);
  std::vector<WordVector> words;
  for (const Request& point : request.requests("points")) {
    const Sentence sentence = sentence_of(point, view.model);
    const bool is_whole = point.integer("index") == -1;
    const Index index = is_whole ? -1 : point.index("index", std::ssize(sentence.words));
    words.push_back(word_vector(view.model, sentence, index, view.off));
  }
  require<UserError>(!words.empty(), "\"points\" of the request is empty");
  return object({{"before", in_two_dimensions(words, &WordVector::static_vector)},
                 {"after", in_two_dimensions(words, &WordVector::contextual)}});
}

Json Looking::probe(const Request& request) {
  return object({{"probes", documents::probes(model_of(request).model)}});
}

}  // namespace qkv::page
