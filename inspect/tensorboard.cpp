#include "inspect/tensorboard.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "datasets/printable.h"
#include "datasets/text.h"
#include "inspect/attention_image.h"
#include "inspect/components.h"
#include "inspect/word_vectors.h"
#include "train/metrics/metrics.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

constexpr Index most_images = 4;               // texts
constexpr std::size_t most_image_tokens = 64;  // of a text in an image
constexpr Index most_texts = 1000;             // whose words the projector shows
constexpr std::size_t most_words = 2000;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A series for each number of a line but its step and its time: "loss/valid".
EventContent content_of(const MetricsEvent& event) {
  EventContent content{.step = event.step};
  const auto line = nlohmann::ordered_json::parse(event.json);
  for (const auto& [name, value] : line.items())
    if (value.is_number() && name != "step" && name != "seconds")
      content.scalars.push_back({name + "/" + event.split, value.get<double>()});
  return content;
}

/// The contents of an event file with the lines of metrics.jsonl and the images of `file` up to
/// `step`, in the order of steps. Each event has the time that it has in `file`, new ones `now`.
std::string restored(std::string_view file, const std::vector<MetricsEvent>& metrics,
                     std::int64_t step, double now) {
  std::map<std::pair<std::int64_t, std::string_view>, double> times;
  std::vector<std::pair<std::int64_t, std::string>> events;
  const auto known = events_in(file);
  for (const std::string_view event : known) {
    const StoredEvent stored = stored_event(event);
    times[{stored.step, stored.summary}] = stored.wall_time;
    if (stored.has_image && stored.step <= step) events.emplace_back(stored.step, event);
  }
  for (const MetricsEvent& line : metrics) {
    const EventContent content = content_of(line);
    const std::string event = event_of(now, content);
    const auto found = times.find({content.step, stored_event(event).summary});
    events.emplace_back(content.step,
                        found == times.end() ? event : event_of(found->second, content));
  }
  std::ranges::stable_sort(events, {}, &std::pair<std::int64_t, std::string>::first);
  std::string bytes =
      event_record(version_event(known.empty() ? now : stored_event(known[0]).wall_time));
  for (const auto& [at, event] : events) bytes += event_record(event);
  return bytes;
}

/// The contents of a file; empty where there is none.
std::string contents_of(const std::filesystem::path& file) {
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return "";
  const auto bytes = read_file(file, std::numeric_limits<std::uint64_t>::max());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// At most `count` examples of a split, evenly over it.
std::vector<LabelledText> spread_examples(const Task& task, Split split, Index count) {
  const Index size = task.size(split);
  std::vector<LabelledText> texts;
  for (Index i = 0; i < std::min(count, size); ++i)
    texts.push_back(task.example(split, i * size / std::min(count, size)));
  return texts;
}

template <class T>
void shorten(std::vector<T>& values) {
  values.resize(std::min(values.size(), most_image_tokens));
}

/// The beginning of a sentence.
Sentence beginning_of(Sentence sentence) {
  shorten(sentence.words);
  shorten(sentence.ids);
  sentence.targets.clear();
  if (!sentence.written) return sentence;
  WrittenText& written = *sentence.written;
  shorten(written.inputs);
  shorten(written.outputs);
  shorten(written.input_ids);
  shorten(written.output_ids);
  return sentence;
}

/// The attention of a model by what attends to what; none for other kinds of models.
std::vector<std::pair<std::string, LayerWeights>> attention_in(const LoadedModel& model,
                                                               const Sentence& sentence) {
  const Recorder recorder = recorded(model, sentence);
  if (!sentence.written) return {{"attention", self_attention(recorder)}};
  const auto stacks = stacks_of(*model.network);
  const Transformer &encoder = *stacks.front().second, &decoder = *stacks.back().second;
  return {{"encoder attention", attention_of(recorder, encoder)},
          {"decoder attention", attention_of(recorder, decoder)},
          {"cross-attention", attention_of(recorder, decoder, true)}};
}

/// "money bank grows", or of an encoder-decoder "cab → bac <eos>"; at most 100 characters.
std::string title_of(const Sentence& sentence) {
  constexpr std::size_t most_characters = 100;
  std::string text = fmt::format("{}", fmt::join(sentence.words, " "));
  if (sentence.written) text += fmt::format(" → {}", fmt::join(sentence.written->outputs, " "));
  auto shown = characters(in_one_line(text));
  shown.resize(std::min(shown.size(), most_characters));
  return fmt::format("{}", fmt::join(shown, ""));
}

std::vector<EventImage> attention_images(const LoadedModel& model) {
  std::vector<EventImage> images;
  Index number = 0;
  for (const LabelledText& text : spread_examples(*model.task, Split::valid, most_images)) {
    const Sentence sentence = beginning_of(text.sentence);
    for (const auto& [name, layers] : attention_in(model, sentence)) {
      if (layers.empty()) continue;
      const Image image = attention_image(layers);
      images.push_back({fmt::format("{}/{}: {}", name, number, title_of(sentence)), image.height,
                        image.width, png(image)});
    }
    ++number;
  }
  return images;
}

/// The words that examples are about, or all of their words: of the validation data, else of the
/// training data.
std::vector<WordVector> projected_words(const LoadedModel& model) {
  const Split split = model.task->size(Split::valid) > 0 ? Split::valid : Split::train;
  std::vector<WordVector> words;
  for (LabelledText& text : spread_examples(*model.task, split, most_texts)) {
    text.sentence.written.reset();  // vectors of the source alone, as qkv embed shows them
    for (WordVector& word : word_vectors(model, text.sentence, -1)) {
      if (words.size() == most_words) return words;
      if (text.index >= 0 && word.index != text.index) continue;
      word.label = text.label;
      words.push_back(std::move(word));
    }
  }
  return words;
}

constexpr std::string_view projector_config = R"(embeddings {
  tensor_name: "words"
  tensor_path: "tensors.tsv"
  metadata_path: "metadata.tsv"
}
)";

}  // namespace

TensorBoard::TensorBoard(const Config& config, RunFolder folder, Callback& next)
    : writes_(config.train.tensorboard), folder_(std::move(folder)), next_(next) {}

template <class Write>
void TensorBoard::attempt(Write write) {
  if (!writes_) return;
  try {
    write();
  } catch (const Error& error) {
    writes_ = false;  // no record may follow an incomplete one
    next_.on_message(fmt::format("{}; training continues without TensorBoard files", error.what()));
  }
}

void TensorBoard::on_start(std::int64_t step, std::int64_t steps) {
  start_ = seconds_since_1970();
  attempt([&] {
    std::error_code error;
    std::filesystem::create_directories(folder_.tensorboard(), error);
    require<FileError>(!error, "cannot create the folder {}: {}", folder_.tensorboard().string(),
                       error.message());
    write_durably(folder_.events(), restored(contents_of(folder_.events()),
                                             read_metrics(folder_.metrics()).events, step, start_));
  });
  next_.on_start(step, steps);
}

void TensorBoard::on_metrics(const MetricsEvent& event) {
  attempt([&] {
    append(folder_.events(),
           event_record(event_of(start_ + event.seconds.value_or(0), content_of(event))));
  });
  next_.on_metrics(event);
}

void TensorBoard::on_validation(const LoadedModel& model, std::int64_t step) {
  attempt([&] {
    const EventContent content{.step = step, .scalars = {}, .images = attention_images(model)};
    if (!content.images.empty())
      append(folder_.events(), event_record(event_of(seconds_since_1970(), content)));
  });
  next_.on_validation(model, step);
}

void TensorBoard::on_trained(const LoadedModel& model) {
  attempt([&] {
    const auto [tensors, metadata] = projector_tables(projected_words(model));
    write_durably(folder_.tensors(), tensors);
    write_durably(folder_.metadata(), metadata);
    write_durably(folder_.projector_config(), projector_config);
  });
  next_.on_trained(model);
}

}  // namespace qkv
