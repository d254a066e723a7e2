#include <cmath>
#include <utility>

#include "cli/commands/shared.h"
#include "inspect/attention_flow.h"
#include "inspect/components.h"
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
};

constexpr std::string_view nothing_to_show = "the model has no attention to show";

LayerWeights attention_of(LoadedModel& trained, const Sentence& sentence) {
  LayerWeights layers = self_attention(recorded(trained, sentence));
  require<UserError>(!layers.empty(), "{}", nothing_to_show);
  return layers;
}

bool is_chosen(const AttendOptions& options, std::size_t layer, std::size_t head) {
  const auto fits = [](Index option, std::size_t i) {
    return option < 0 || option == static_cast<Index>(i);
  };
  return fits(options.layer, layer) && fits(options.head, head);
}

/// Calls `f(layer, head, weights)` for those that the user asked for.
template <class F>
void for_each_head(const AttendOptions& options, const LayerWeights& layers, F f) {
  require_in_range(options.layer, layers.size(), "--layer");
  const auto heads = static_cast<std::size_t>(layers[0].dim(0));
  require_in_range(options.head, heads, "--head");
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < heads; ++h)
      if (is_chosen(options, l, h)) f(l, h, weights_of_head(layers[l], static_cast<Index>(h)));
}

Json to_json(const AttentionStatistics& h) {
  return {{"entropy", h.entropy},   {"self", h.self},
          {"previous", h.previous}, {"next", h.next},
          {"first", h.first},       {"last", h.last},
          {"distance", h.distance}, {"score_variance", h.score_variance}};
}

Json layers_json(const LayerWeights& layers) {
  Json list = Json::array();
  for (const Tensor& layer : layers) {
    Json entropies = Json::array();
    for (Index h = 0; h < layer.dim(0); ++h)
      entropies.push_back(entropy(weights_of_head(layer, h)));
    list.push_back({{"heads", commands::to_json(layer)}, {"entropy", entropies}});
  }
  return list;
}

/// Draws matrices of queries and keys.
class AttentionMaps {
 public:
  AttentionMaps(const AttendOptions& options, Document& document)
      : options_(options), document_(document) {}

  void draw(const std::string& title, const Tensor& weights, const std::vector<std::string>& rows,
            const std::vector<std::string>& columns, bool begins_row = true) {
    document_.add_picture({.title = title,
                           .content = HeatMap{rows_of(weights), rows, columns},
                           .begins_row = begins_row});
  }
  /// The heads that the user asked for. `kind`: "decoder, "; empty where there is one kind.
  void draw_heads(const std::string& kind, const LayerWeights& layers,
                  const std::vector<std::string>& rows, const std::vector<std::string>& columns) {
    Index drawn_layer = -1;
    for_each_head(options_, layers, [&](std::size_t l, std::size_t h, const Tensor& weights) {
      const Index before = std::exchange(drawn_layer, static_cast<Index>(l));
      draw(fmt::format(
               "{}layer {}, head {}: how much a row attends to a column; entropy {:.2f} bits", kind,
               l, h, entropy(weights)),
           weights, rows, columns, before != drawn_layer);
    });
  }
  /// Whether the user asked for no layer or head alone.
  bool draws_all() const { return options_.layer < 0 && options_.head < 0; }

 private:
  const AttendOptions& options_;
  Document& document_;
};

/// The attention of a sentence's words to one another. `kind` as of `AttentionMaps::draw_heads`.
void add_self_attention(Document& document, AttentionMaps& maps, const std::string& kind,
                        const LayerWeights& layers, const Sentence& sentence) {
  const auto words = marked(sentence, sentence.targets);
  const Tensor flow = rollout(layers);
  document.data["tokens"] = sentence.words;
  document.data["layers"] = layers_json(layers);
  document.data["rollout"] = commands::to_json(flow);
  maps.draw_heads(kind, layers, words, words);
  if (maps.draws_all())
    maps.draw(kind + "attention rollout: fraction of a column's input in a row after all layers",
              flow, words, words);
}

/// The attention of an encoder-decoder's written text to itself and to the source.
void add_written(Document& document, AttentionMaps& maps, const Transformer& decoder,
                 const Recorder& recorder, const Sentence& source, const WrittenText& text) {
  const auto shown = [](std::vector<std::string> tokens) {
    for (std::string& token : tokens) token = visible(token);
    return tokens;
  };
  const auto inputs = shown(text.inputs), outputs = shown(text.outputs),
             sources = shown(source.words);
  const LayerWeights own = qkv::attention_of(recorder, decoder),
                     cross = qkv::attention_of(recorder, decoder, true);
  document.data["inputs"] = text.inputs;
  document.data["outputs"] = text.outputs;
  document.data["decoder"] = layers_json(own);
  document.data["cross"] = layers_json(cross);
  maps.draw_heads("decoder, ", own, inputs, inputs);
  maps.draw_heads("cross-attention of each output, ", cross, outputs, sources);
  const Tensor alignment = mean(cross.back(), 0);
  document.data["alignment"] = commands::to_json(alignment);
  if (maps.draws_all())
    maps.draw("alignment: cross-attention of the last layer, mean over heads", alignment, outputs,
              sources);
}

Document attend_in_sentence(LoadedModel& trained, const AttendOptions& options) {
  Sentence sentence = read_sentence(*trained.task, options.sentence);
  Document document;
  AttentionMaps maps(options, document);
  note_unknown_words(document, *trained.task, {&sentence, 1});
  write_target(trained, sentence, options.target);
  if (!sentence.written) {
    add_self_attention(document, maps, "", attention_of(trained, sentence), sentence);
    return document;
  }
  const Recorder recorder = recorded(trained, sentence);
  const auto stacks = stacks_of(*trained.network);
  add_self_attention(document, maps, "encoder, ",
                     qkv::attention_of(recorder, *stacks.front().second), sentence);
  add_written(document, maps, *stacks.back().second, recorder, sentence, *sentence.written);
  return document;
}

AttentionStatistics statistics_for(const AttentionSteps& module, std::size_t head,
                                   const LabelledText& text) {
  AttentionStatistics result = attention_statistics(module, head);
  const Tensor& weights = module.heads[head].weights;
  if (text.antecedent >= 0)
    result.answer =
        weights.values()[static_cast<std::size_t>(text.index * weights.dim(1) + text.antecedent)];
  return result;
}

bool have_answers(const std::vector<LabelledText>& texts) {
  return std::ranges::any_of(texts, [](const LabelledText& text) { return text.antecedent >= 0; });
}

/// A head over the sentences of a file.
struct HeadOverData {
  std::vector<AttentionStatistics> sentences = {};
  HeadScores scores = {};
};
using HeadsOverData = std::vector<std::vector<HeadOverData>>;  // [layer][head]

HeadsOverData heads_over(LoadedModel& trained, const std::vector<LabelledText>& texts,
                         ReadCallback& callback) {
  HeadsOverData found;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    callback.on_item("attending", t, texts.size());
    const LabelledText& text = texts[t];
    const auto layers = self_attention_steps(recorded(trained, text.sentence));
    require<UserError>(!layers.empty(), "{}", nothing_to_show);
    found.resize(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      found[l].resize(layers[l].heads.size());
      for (std::size_t h = 0; h < layers[l].heads.size(); ++h) {
        found[l][h].sentences.push_back(statistics_for(layers[l], h, text));
        found[l][h].scores.add(layers[l].heads[h].weights, layers[l].mask, text.sentence.ids);
      }
    }
  }
  return found;
}

template <class F>
void for_each_pattern(F f) {
  for (std::size_t i = 0; i < head_patterns; ++i) f(static_cast<HeadPattern>(i));
}

Json to_json(const HeadScores& scores) {
  Json json = Json::object();
  for_each_pattern([&](HeadPattern pattern) {
    std::string key(to_string(pattern));
    std::ranges::replace(key, ' ', '_');
    const auto score = scores.score(pattern);
    json[key] = score ? Json(*score) : Json();
  });
  return json;
}

/// Names and scores of the heads that the user asked for.
Rows score_table(const HeadsOverData& layers, const AttendOptions& options) {
  Rows rows = {{"head", "name"}};
  for_each_pattern([&](HeadPattern pattern) { rows[0].emplace_back(to_string(pattern)); });
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      if (!is_chosen(options, l, h)) continue;
      const HeadScores& scores = layers[l][h].scores;
      const auto name = scores.name();
      rows.push_back(
          {fmt::format("layer {}, head {}", l, h), name ? std::string(to_string(*name)) : "-"});
      for_each_pattern([&](HeadPattern pattern) {
        const auto score = scores.score(pattern);
        rows.back().push_back(score ? fmt::format("{:.3f}", *score) : "-");
      });
    }
  return rows;
}

/// The same scores; blank where no query has such a key.
HeatMap score_map(const HeadsOverData& layers, const AttendOptions& options) {
  HeatMap map;
  for_each_pattern([&](HeadPattern pattern) { map.columns.emplace_back(to_string(pattern)); });
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      if (!is_chosen(options, l, h)) continue;
      map.rows.push_back(fmt::format("layer {}, head {}", l, h));
      map.cells.emplace_back();
      for_each_pattern([&](HeadPattern pattern) {
        map.cells.back().push_back(layers[l][h].scores.score(pattern).value_or(std::nan("")));
      });
    }
  return map;
}

Document attend_over_data(LoadedModel& trained, const AttendOptions& options) {
  Document document;
  Notes notes(document);
  const auto texts = read_labelled_texts(trained, options.data, notes);
  const HeadsOverData layers = heads_over(trained, texts, notes);
  require_in_range(options.layer, layers.size(), "--layer");
  require_in_range(options.head, layers[0].size(), "--head");
  Json list = Json::array();
  for (const auto& heads : layers) {
    list.push_back({{"heads", Json::array()}});
    for (const HeadOverData& head : heads) {
      const AttentionStatistics mean = mean_statistics(head.sentences);
      Json json = to_json(mean);
      if (have_answers(texts)) json["answer"] = mean.answer;
      json["scores"] = to_json(head.scores);
      const auto name = head.scores.name();
      json["name"] = name ? Json(to_string(*name)) : Json();
      list.back()["heads"].push_back(json);
    }
  }
  Rows rows = {{"head", "entropy (bits)", "self", "previous", "next", "first", "last",
                "distance (words)", "variance of scores"}};
  if (have_answers(texts)) rows[0].push_back("to the answer");
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      if (!is_chosen(options, l, h)) continue;
      const AttentionStatistics at = mean_statistics(layers[l][h].sentences);
      rows.push_back({fmt::format("layer {}, head {}", l, h)});
      for (const double v : {at.entropy, at.self, at.previous, at.next, at.first, at.last,
                             at.distance, at.score_variance})
        rows.back().push_back(fmt::format("{:.3f}", v));
      if (have_answers(texts)) rows.back().push_back(fmt::format("{:.3f}", at.answer));
    }
  document.data = {{"sentences", texts.size()}, {"layers", list}};
  document.add_text("attention statistics of each head, mean over the words of {} sentences\n",
                    texts.size());
  document.add_table(rows);
  document.add_text(
      "\nattention to the keys that name a head (above 0.5), mean over words with such\n");
  document.add_table(score_table(layers, options));
  document.add_picture({.title = "head scores: attention to the keys that name a head",
                        .content = score_map(layers, options),
                        .needs_colours = true});
  return document;
}

Document attend(const AttendOptions& options) {
  require<UserError>(options.sentence.empty() != options.data.empty(),
                     "give a sentence or --data, one of the two");
  LoadedModel trained = load_model(options.model, options.untrained);
  return options.data.empty() ? attend_in_sentence(trained, options)
                              : attend_over_data(trained, options);
}

}  // namespace

void add_attend(CommandLine& program) {
  add_command<AttendOptions>(
      program, "attend", "Show which words each word attends to",
      [](Command& command, AttendOptions& options) {
        add_model_argument(command, options.model);
        command.add_option("SENTENCE", options.sentence, "A sentence");
        add_target_option(command, options.target);
        command.add_option("--data FILE", options.data,
                           "Average over the sentences of a file in the task's format");
        add_head_options(command, options.layer, options.head);
        add_untrained_flag(command, options.untrained);
        command.add_svg_option();
      },
      attend);
}

}  // namespace qkv::commands
