#include "page/looking.h"

#include <algorithm>
#include <cstring>

#include "inspect/documents/ablate.h"
#include "inspect/documents/attend.h"
#include "inspect/documents/embed.h"
#include "inspect/documents/explain.h"
#include "inspect/documents/generate.h"
#include "inspect/documents/predict.h"
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

bool has_queries(Network& network) {
  return std::ranges::any_of(parameters(network), [](const NamedParameter& named) {
    return named.parameter->role() == Role::query;
  });
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

/// The same with the output that the model writes for it, if it writes any.
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

const Looking::Changed& Looking::model_of(const Request& request) {
  const std::string name = request.text("model");
  const auto found = models_.find(name);
  require<UserError>(found != models_.end(), "there is no model \"{}\"; load it before the call",
                     name);
  Changed& changed = found->second;
  const Request changes = request.request("changes");
  if (changed.changes != changes) {
    changed.changes.reset();  // until all of them are made
    changed.intervened = intervened_as(changes, changed.loaded);
    changed.off = replacements_of(changes, changed.model());
    changed.changes = changes;
  }
  return changed;
}

Json Looking::load(const Request& request) {
  LoadedModel model =
      fresh_model(parse_config(request.text("config"), "page"), request.lists("vocabulary"));
  model.step = request.integer("step");
  assign_parameters(*model.network, taken(files_, "parameters"));
  models_.insert_or_assign(request.text("model"), Changed{std::move(model)});
  return Json::object();
}

Json Looking::read(const Request& request) {
  const LoadedModel& model = model_of(request).model();
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
  const Changed& changed = model_of(request);
  const LoadedModel& model = changed.model();
  const std::string text = request.text("text");
  const Sentence sentence = model.task->read(text);
  const Hook hook = hook_of(changed.off);
  Context context({.hook = &hook});
  std::vector<Prediction> predictions;
  if (row_of(task_kinds(), model.config.task.kind).traits.has_source_and_target) {
    predictions = model.task->predict(*model.network, text, context);
  } else {
    std::optional<Index> asked;
    if (request.has("index")) asked = request.index("index", std::ssize(sentence.words));
    for (const auto& word : asked_words(model, sentence, asked))
      predictions.push_back(model.task->answer(*model.network, text, sentence, word, context));
  }
  const auto words = documents::words_of(text, model.task->tokenizer());
  Json list = Json::array();
  for (const Prediction& prediction : predictions)
    list.push_back(documents::prediction(prediction, sentence, words));
  return object({{"predictions", list}});
}

Json Looking::attend(const Request& request) {
  const Changed& changed = model_of(request);
  const LoadedModel& model = changed.model();
  const Sentence sentence = answered(request, model, hook_of(changed.off));
  return documents::attend(
      sentence, documents::attention_in(model, sentence, recorded(model, sentence, changed.off)));
}

Json Looking::explain(const Request& request) {
  const Changed& changed = model_of(request);
  const LoadedModel& model = changed.model();
  const bool is_output = request.flag("output");
  const Sentence sentence =
      is_output ? answered(request, model, hook_of(changed.off)) : sentence_of(request, model);
  require<UserError>(!is_output || sentence.written,
                     "\"output\" of the request: the model writes no text");
  const auto& tokens = is_output ? sentence.written->inputs : sentence.words;
  const Explanation explanation =
      qkv::explain(model, sentence, request.index("index", std::ssize(tokens)), changed.off);
  std::vector<LensState> lens;
  std::optional<LogitAttribution> attribution;
  if (request.flag("causes")) {
    lens = logit_lens(model, explanation);
    attribution = logit_attribution(model, explanation);
  }
  using documents::Parameters;
  return documents::explain(model, explanation, lens, attribution,
                            request.flag("parameters") ? Parameters::shown : Parameters::left_out);
}

Json Looking::embed(const Request& request) {
  const Changed& changed = model_of(request);
  const Sentence sentence = sentence_of(request, changed.model());
  const Index index =
      request.has("index") ? request.index("index", std::ssize(sentence.words)) : -1;
  const WordVector word = word_vector(changed.model(), sentence, index, changed.off);
  return object({{"sentences", Json::array({documents::vectors(word)})}});
}

Json Looking::nearest(const Request& request) {
  const LoadedModel& model = model_of(request).model();
  const Sentence sentence = sentence_of(request, model);
  const std::int32_t id = sentence.ids[token_in(request, sentence)];
  const Index most = model.task->vocabulary().size(), count = request.integer("count");
  return documents::nearest(
      nearest_words(model, id, static_cast<std::size_t>(std::clamp<Index>(count, 0, most))));
}

Json Looking::ablate(const Request& request) {
  const Changed& changed = model_of(request);
  const LoadedModel& model = changed.model();
  const Hook hook = hook_of(changed.off);
  LabelledText text{.sentence = answered(request, model, hook)};
  if (request.has("index")) text.index = request.index("index", std::ssize(text.sentence.words));
  const Tensor logits =
      scores_after(model, text.sentence, std::max<Index>(text.index, 0), changed.off).logits;
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
  const Changed& changed = model_of(request);
  const LoadedModel& model = changed.model();
  require<UserError>(model.config.task.kind == TaskKind::language_model,
                     "the model was not trained to continue a text; generate needs task.kind = "
                     "\"language-model\"");
  const std::string text = request.text("text");
  ReadCallback silent;
  return documents::generate(model, text, documents::read_prompt(model, text, silent),
                             request.integer("tokens"), {.temperature = 0}, changed.off,
                             [](std::string_view) {});
}

Json Looking::map(const Request& request) {
  const Changed& changed = model_of(request);
  std::vector<WordVector> words;
  for (const Request& point : request.requests("points")) {
    const Sentence sentence = sentence_of(point, changed.model());
    const bool is_whole = point.integer("index") == -1;
    const Index index = is_whole ? -1 : point.index("index", std::ssize(sentence.words));
    words.push_back(word_vector(changed.model(), sentence, index, changed.off));
  }
  require<UserError>(!words.empty(), "\"points\" of the request is empty");
  return object({{"before", in_two_dimensions(words, &WordVector::static_vector)},
                 {"after", in_two_dimensions(words, &WordVector::contextual)}});
}

}  // namespace qkv::page
