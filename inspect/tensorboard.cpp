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
  std::vector<std::pair<std::string, double>> scalars;
  const auto line = nlohmann::ordered_json::parse(event.json);
  for (const auto& [name, value] : line.items())
    if (value.is_number() && name != "step" && name != "seconds")
      scalars.emplace_back(name + "/" + event.split, value.get<double>());
  return event_record(scalar_event(wall_time, event.step, scalars));
}

/// An event file of all lines. The sessions, in each of which `MetricsEvent::seconds` begins anew,
/// follow one another without a pause and end at `now`.
std::string event_file(const std::vector<MetricsEvent>& events, double now) {
  std::vector<double> seconds = {0};  // of training up to each line, over all sessions
  double last = 0;
  for (const MetricsEvent& event : events) {
    const double in_session = event.seconds.value_or(last);
    seconds.push_back(seconds.back() + in_session - (in_session < last ? 0 : last));
    last = in_session;
  }
  const double start = now - seconds.back();
  std::string bytes = event_record(version_event(start));
  for (std::size_t i = 0; i < events.size(); ++i)
    bytes += record_of(events[i], start + seconds[i + 1]);
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
