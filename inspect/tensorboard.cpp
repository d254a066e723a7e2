#include "inspect/tensorboard.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "inspect/event_file.h"
#include "train/metrics/metrics.h"
#include "train/storage/durable_file.h"

namespace qkv {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The record of a line of metrics: a series for each number but its step and its time, such as
/// "loss/valid".
std::string record_of(const MetricsEvent& event, double wall_time) {
  std::vector<EventScalar> scalars;
  const auto line = nlohmann::ordered_json::parse(event.json);
  for (const auto& [name, value] : line.items())
    if (value.is_number() && name != "step" && name != "seconds")
      scalars.push_back({name + "/" + event.split, value.get<double>()});
  return event_record(scalar_event(wall_time, event.step, scalars));
}

/// Seconds of training up to each line, over all sessions: `MetricsEvent::seconds` begins anew with
/// each of them.
std::vector<double> training_seconds(const std::vector<MetricsEvent>& events) {
  std::vector<double> all;
  double earlier_sessions = 0, last = 0;
  for (const MetricsEvent& event : events) {
    const double seconds = event.seconds.value_or(last);
    if (seconds < last) earlier_sessions += last;
    last = seconds;
    all.push_back(earlier_sessions + seconds);
  }
  return all;
}

/// An event file of all lines. The sessions follow one another without a pause and end at `now`.
std::string event_file(const std::vector<MetricsEvent>& events, double now) {
  const std::vector<double> seconds = training_seconds(events);
  const double start = now - (seconds.empty() ? 0 : seconds.back());
  std::string bytes = event_record(version_event(start));
  for (std::size_t i = 0; i < events.size(); ++i) bytes += record_of(events[i], start + seconds[i]);
  return bytes;
}

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
    write_durably(folder_.events(), event_file(read_metrics(folder_.metrics()).events, start_));
  });
  next_.on_start(step, steps);
}

void TensorBoard::on_metrics(const MetricsEvent& event) {
  attempt([&] { append(folder_.events(), record_of(event, start_ + event.seconds.value_or(0))); });
  next_.on_metrics(event);
}

}  // namespace qkv
