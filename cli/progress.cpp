#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/standard_streams.h"
#include "cli/terminal.h"
#include "core/parallel.h"

namespace qkv {
namespace {

constexpr std::int64_t steps_before_estimate = 5;

std::string duration(double seconds) {
  const auto s = std::llround(seconds);
  if (s < 60) return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02} min", s / 60, s % 60);
  return fmt::format("{}:{:02} h", s / 3600, s / 60 % 60);
}

}  // namespace

Bar::Bar(std::chrono::milliseconds delay)
    : terminal_(isatty(STDERR_FILENO) == 1), next_(Clock::now() + delay) {}

bool Bar::due() const {
  return terminal_ && Clock::now() >= next_;
}

void Bar::draw(double fraction, const std::string& text) {
  next_ = Clock::now() + std::chrono::milliseconds(100);
  const int width =
      std::clamp(terminal_width(STDERR_FILENO) - static_cast<int>(text.size()) - 3, 0, 40);
  const auto done = static_cast<int>(fraction * width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < done ? "━" : "─";
  draw_on_terminal("\r\033[K" + bar + printable(text));
  drawn_ = true;
}

void Bar::draw_reading(std::string_view what, double fraction) {
  if (due()) draw(fraction, fmt::format(" {} {:.0f} %", what, 100 * fraction));
}

void Bar::erase() {
  if (drawn_) draw_on_terminal("\r\033[K");
  drawn_ = false;
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

double Progress::seconds_left(std::int64_t step) const {
  return seconds() / static_cast<double>(step - first_step_) * static_cast<double>(steps_ - step);
}

void Progress::on_reading(std::string_view what, double fraction) {
  if (name_.empty()) bar_.draw_reading(what, fraction);
}

void Progress::on_start(std::int64_t step, std::int64_t steps) {
  first_step_ = step;
  steps_ = steps;
  start_ = Clock::now();
}

bool SharedLines::is_new(const std::string& line) {
  const std::lock_guard lock(mutex_);
  return lines_.insert(line).second;
}

void Progress::on_message(const std::string& line) {
  if (shared_ && steps_ == 0 && !shared_->is_new(line)) return;
  bar_.erase();
  const bool is_named = name_.empty() || line.starts_with(name_);
  print_note((is_named ? line : fmt::format("{}: {}", name_, line)) + "\n");
}

void Progress::on_step(const StepReport& report) {
  if (!name_.empty()) return;
  if (report.step == first_step_ + steps_before_estimate && report.step < steps_)
    on_message(fmt::format("about {} for {} steps on {} thread{}",
                           duration(seconds() + seconds_left(report.step)), steps_ - first_step_,
                           threads(), threads() == 1 ? "" : "s"));
  if (!bar_.due() && !(bar_.on_terminal() && report.step == steps_)) return;
  std::string text = fmt::format(" {}/{}  loss {:.4f}", report.step, steps_, report.loss);
  if (!report.headline.empty()) text += "  " + report.headline;
  text += fmt::format("  {:.0f} tokens/s  {} left", report.tokens_per_second,
                      duration(seconds_left(report.step)));
  bar_.draw(static_cast<double>(report.step) / static_cast<double>(steps_), text);
}

void Progress::on_evaluation(const StepReport& report, double train_loss,
                             const std::optional<Evaluation>& valid) {
  std::string line = fmt::format("step {:>{}}  loss {:.4f}", report.step,
                                 std::to_string(steps_).size(), train_loss);
  if (valid) line += fmt::format("  valid loss {:.4f}  {}", valid->loss, valid->headline());
  on_message(line + fmt::format("  {:.0f} tokens/s", report.tokens_per_second));
}

}  // namespace qkv
