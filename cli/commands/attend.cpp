#include "cli/commands/shared.h"
#include "cli/heat_map.h"
#include "inspect/attention_flow.h"
#include "inspect/labelled_text.h"

namespace qkv::commands {
namespace {

struct AttendOptions {
  std::string model;
  std::string sentence;
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

std::vector<std::vector<double>> rows_of(const Tensor& matrix) {
  std::vector<std::vector<double>> rows;
  for (Index i = 0; i < matrix.dim(0); ++i) rows.push_back(slice(matrix, 0, i, i + 1).values());
  return rows;
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

Document attend_in_sentence(LoadedModel& trained, const AttendOptions& options) {
  const Sentence sentence = read_sentence(*trained.task, options.sentence);
  const LayerWeights layers = attention_of(trained, sentence);
  const bool all = options.layer < 0 && options.head < 0;
  Document document;
  document.data = {{"tokens", sentence.words}, {"layers", Json::array()}};
  for (const Tensor& layer : layers) {
    Json entropies = Json::array();
    for (Index h = 0; h < layer.dim(0); ++h)
      entropies.push_back(entropy(weights_of_head(layer, h)));
    document.data["layers"].push_back(
        {{"heads", commands::to_json(layer)}, {"entropy", entropies}});
  }
  const Tensor flow = rollout(layers);
  document.data["rollout"] = commands::to_json(flow);
  note_unknown_words(document, {&sentence, 1});
  const auto words = marked(sentence, sentence.targets);
  const auto draw = [&](const std::string& title, const Tensor& weights) {
    document.add_text("{}\n", title);
    document.add_picture(
        [map = HeatMap{rows_of(weights), words, words}](Colours colours, int width) {
          return heat_map(map, colours, width) + "\n";
        });
  };
  for_each_head(options, layers, [&](std::size_t l, std::size_t h, const Tensor& weights) {
    draw(fmt::format("layer {}, head {}: how much a row attends to a column; entropy {:.2f} bits",
                     l, h, entropy(weights)),
         weights);
  });
  if (all) draw("attention rollout: fraction of a column's input in a row after all layers", flow);
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

/// [layer][head] over the sentences of a file.
std::vector<std::vector<AttentionStatistics>> mean_statistics_over(
    LoadedModel& trained, const std::vector<LabelledText>& texts) {
  std::vector<std::vector<std::vector<AttentionStatistics>>> found;
  for (const LabelledText& text : texts) {
    const auto layers = self_attention_steps(recorded(trained, text.sentence));
    require<UserError>(!layers.empty(), "{}", nothing_to_show);
    found.resize(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      found[l].resize(layers[l].heads.size());
      for (std::size_t h = 0; h < layers[l].heads.size(); ++h)
        found[l][h].push_back(statistics_for(layers[l], h, text));
    }
  }
  std::vector<std::vector<AttentionStatistics>> result;
  for (const auto& heads : found) {
    result.emplace_back();
    for (const auto& of_head : heads) result.back().push_back(mean_statistics(of_head));
  }
  return result;
}

Document attend_over_data(LoadedModel& trained, const AttendOptions& options) {
  const auto texts = read_labelled_texts(trained, options.data);
  const auto layers = mean_statistics_over(trained, texts);
  require_in_range(options.layer, layers.size(), "--layer");
  require_in_range(options.head, layers[0].size(), "--head");
  Json list = Json::array();
  for (const auto& heads : layers) {
    list.push_back({{"heads", Json::array()}});
    for (const AttentionStatistics& h : heads) {
      list.back()["heads"].push_back(to_json(h));
      if (have_answers(texts)) list.back()["heads"].back()["answer"] = h.answer;
    }
  }
  Rows rows = {{"head", "entropy (bits)", "self", "previous", "next", "first", "last",
                "distance (words)", "variance of scores"}};
  if (have_answers(texts)) rows[0].push_back("to the answer");
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      if (!is_chosen(options, l, h)) continue;
      const AttentionStatistics& at = layers[l][h];
      rows.push_back({fmt::format("layer {}, head {}", l, h)});
      for (const double v : {at.entropy, at.self, at.previous, at.next, at.first, at.last,
                             at.distance, at.score_variance})
        rows.back().push_back(fmt::format("{:.3f}", v));
      if (have_answers(texts)) rows.back().push_back(fmt::format("{:.3f}", at.answer));
    }
  Document document;
  document.data = {{"sentences", texts.size()}, {"layers", list}};
  document.add_text("attention statistics of each head, mean over the words of {} sentences\n",
                    texts.size());
  document.add_table(rows);
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
        command.add_option("--data", options.data,
                           "Average over the sentences of a file in the task's format");
        add_head_options(command, options.layer, options.head);
        add_untrained_flag(command, options.untrained);
      },
      attend);
}

}  // namespace qkv::commands
