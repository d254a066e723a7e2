#include <algorithm>

#include "cli/commands/shared.h"
#include "inspect/documents/attend.h"
#include "inspect/head_scores.h"
#include "inspect/labelled_text.h"

namespace qkv::commands {
namespace {

struct AttendOptions {
  std::string model;
  std::string sentence;
  std::string target;
  std::string data;
  Index layer = -1;
  Index head = -1;
  bool untrained = false;

  bool shows(std::size_t l, std::size_t h) const {
    return (layer < 0 || layer == static_cast<Index>(l)) &&
           (head < 0 || head == static_cast<Index>(h));
  }
  bool shows_all() const { return layer < 0 && head < 0; }
};

using Words = std::vector<std::string>;

constexpr std::string_view nothing_to_show = "the model has no attention to show";

void require_heads(const AttendOptions& options, std::size_t layers, std::size_t heads) {
  require_in_range(options.layer, layers, "--layer");
  require_in_range(options.head, heads, "--head");
}

/// The heads that the user asked for. `kind`: "decoder, "; empty where there is one kind.
void add_heads(Document& document, const AttendOptions& options, const std::string& kind,
               const LayerWeights& layers, const Words& rows, const Words& columns) {
  const auto heads = static_cast<std::size_t>(layers[0].dim(0));
  require_heads(options, layers.size(), heads);
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < heads; ++h) {
      if (!options.shows(l, h)) continue;
      const Tensor weights = weights_of_head(layers[l], static_cast<Index>(h));
      document.add_picture(
          {.title = fmt::format(
               "{}layer {}, head {}: how much a row attends to a column; entropy {:.2f} bits", kind,
               l, h, entropy(weights)),
           .content = HeatMap{rows_of(weights), rows, columns},
           .begins_row = h == 0 || options.head >= 0});
    }
}

/// A map of all heads together, where the user asked for no layer or head alone.
void add_summary(Document& document, const AttendOptions& options, const std::string& title,
                 const Tensor& weights, const Words& rows, const Words& columns) {
  if (options.shows_all())
    document.add_picture(
        {.title = title, .content = HeatMap{rows_of(weights), rows, columns}, .begins_row = true});
}

void add_written(Document& document, const AttendOptions& options,
                 const documents::SentenceAttention& attention) {
  const auto shown = [](Words tokens) {
    for (std::string& token : tokens) token = visible(token);
    return tokens;
  };
  const Words inputs = shown(attention.inputs), outputs = shown(attention.outputs),
              sources = shown(attention.tokens);
  add_heads(document, options, "decoder, ", attention.decoder, inputs, inputs);
  add_heads(document, options, "cross-attention of each output, ", attention.cross, outputs,
            sources);
  add_summary(document, options, "alignment: cross-attention of the last layer, mean over heads",
              attention.alignment, outputs, sources);
}

Document attend_in_sentence(const LoadedModel& trained, const AttendOptions& options) {
  Sentence sentence = read_sentence(*trained.task, options.sentence);
  Document document;
  note_unknown_words(document, *trained.task, {&sentence, 1});
  write_target(trained, sentence, options.target);
  const auto attention = documents::attention_in(trained, sentence, recorded(trained, sentence));
  require<UserError>(!attention.layers.empty(), "{}", nothing_to_show);
  document.data = documents::attend(attention);
  const std::string kind = sentence.written ? "encoder, " : "";
  const Words words = marked(sentence, sentence.targets);
  add_heads(document, options, kind, attention.layers, words, words);
  add_summary(document, options,
              kind + "attention rollout: fraction of a column's input in a row after all layers",
              attention.rollout, words, words);
  if (sentence.written) add_written(document, options, attention);
  return document;
}

/// A head over the sentences of a file.
struct HeadOverData {
  std::vector<AttentionStatistics> sentences = {};
  HeadScores scores = {};

  void add(const AttentionSteps& module, std::size_t head, const LabelledText& text) {
    const Tensor& weights = module.heads[head].weights;
    AttentionStatistics& added = sentences.emplace_back(attention_statistics(module, head));
    if (text.antecedent >= 0)
      added.answer =
          weights.values()[static_cast<std::size_t>(text.index * weights.dim(1) + text.antecedent)];
    scores.add(weights, module.mask, text.sentence.ids);
  }
};
using HeadsOverData = std::vector<std::vector<HeadOverData>>;  // [layer][head]

HeadsOverData heads_over(const LoadedModel& trained, const std::vector<LabelledText>& texts,
                         ReadCallback& callback) {
  HeadsOverData found;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    callback.on_item("attending", t, texts.size());
    auto layers = attention_steps(recorded(trained, texts[t].sentence));
    std::erase_if(layers, [](const AttentionSteps& module) { return module.cross; });
    require<UserError>(!layers.empty(), "{}", nothing_to_show);
    found.resize(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      found[l].resize(layers[l].heads.size());
      for (std::size_t h = 0; h < layers[l].heads.size(); ++h)
        found[l][h].add(layers[l], h, texts[t]);
    }
  }
  return found;
}

/// "previous_token"
std::string key_of(std::string_view pattern) {
  std::string key(pattern);
  std::ranges::replace(key, ' ', '_');
  return key;
}

struct StatisticName {
  std::string key, title;
  double AttentionStatistics::*value;
};
const StatisticName statistic_names[] = {
    {"entropy", "entropy (bits)", &AttentionStatistics::entropy},
    {"self", "self", &AttentionStatistics::self},
    {"previous", "previous", &AttentionStatistics::previous},
    {"next", "next", &AttentionStatistics::next},
    {"first", "first", &AttentionStatistics::first},
    {"last", "last", &AttentionStatistics::last},
    {"distance", "distance (words)", &AttentionStatistics::distance},
    {"score_variance", "variance of scores", &AttentionStatistics::score_variance}};

Json to_json(const HeadOverData& head, bool has_answers) {
  const AttentionStatistics mean = mean_statistics(head.sentences);
  Json json;
  for (const auto& [key, title, value] : statistic_names) json[key] = mean.*value;
  if (has_answers) json["answer"] = mean.answer;
  for (const auto& [pattern, score] : head.scores.scores())
    json["scores"][key_of(pattern)] = score ? Json(*score) : Json();
  const auto name = head.scores.name();
  json["name"] = name ? Json(*name) : Json();
  return json;
}

Document attend_over_data(const LoadedModel& trained, const AttendOptions& options) {
  Document document;
  Notes notes(document);
  const auto texts = read_labelled_texts(trained, options.data, notes);
  const bool has_answers =
      std::ranges::any_of(texts, [](const LabelledText& text) { return text.antecedent >= 0; });
  const HeadsOverData layers = heads_over(trained, texts, notes);
  require_heads(options, layers.size(), layers[0].size());
  Json list = Json::array(), shown = Json::array();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    list.push_back(object({{"heads", Json::array()}}));
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      const Json head = to_json(layers[l][h], has_answers);
      list.back()["heads"].push_back(head);
      if (!options.shows(l, h)) continue;
      shown.push_back(head);
      shown.back()["head"] = fmt::format("layer {}, head {}", l, h);
    }
  }
  document.data = object({{"sentences", texts.size()}, {"layers", list}});
  std::vector<Column> statistics = {{"head", "/head"}};
  for (const auto& [key, title, value] : statistic_names)
    statistics.push_back({title, "/" + key, "{:.3f}"});
  if (has_answers) statistics.push_back({"to the answer", "/answer", "{:.3f}"});
  std::vector<Column> scores = {{"head", "/head"}};
  for (const auto& [pattern, score] : layers[0][0].scores.scores())
    scores.push_back({std::string(pattern), "/scores/" + key_of(pattern), "{:.3f}"});
  const HeatMap map = map_of(shown, scores);
  scores.insert(scores.begin() + 1, {"name", "/name"});
  document.add_text("attention statistics of each head, mean over the words of {} sentences\n",
                    texts.size());
  document.add_table(table_of(shown, statistics));
  document.add_text(
      "\nattention to the keys that name a head (above 0.5), mean over words with such\n");
  document.add_table(table_of(shown, scores));
  document.add_picture({.title = "head scores: attention to the keys that name a head",
                        .content = map,
                        .needs_colours = true});
  return document;
}

Document attend(const AttendOptions& options) {
  require<UserError>(options.sentence.empty() != options.data.empty(),
                     "give a sentence or --data, one of the two");
  const LoadedModel trained = load_model(options.model, options.untrained);
  return options.data.empty() ? attend_in_sentence(trained, options)
                              : attend_over_data(trained, options);
}

}  // namespace

Command attend_command() {
  const auto o = std::make_shared<AttendOptions>();
  return {.name = "attend",
          .summary = "Show which words each word attends to",
          .options = {model_argument(o->model),
                      {"SENTENCE", &o->sentence, "A sentence"},
                      target_option(o->target),
                      {"--data FILE", &o->data,
                       "Average over the sentences of a file in the task's format"},
                      layer_option(o->layer),
                      head_option(o->head),
                      untrained_flag(o->untrained)},
          .has_pictures = true,
          .run = [o](const Stream&) { return attend(*o); }};
}

}  // namespace qkv::commands
