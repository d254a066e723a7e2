#include "cli/commands/search_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

namespace qkv::commands {
namespace {

/// Calls with the number of each candidate, the best one last, so that it covers the others.
void for_each_upwards(const std::vector<PlottedCandidate>& candidates,
                      const std::function<void(std::size_t)>& draw) {
  for (std::size_t i = candidates.size(); i-- > 0;) draw(i);
}

Axis mean_axis(const std::vector<PlottedCandidate>& candidates, const std::string& metric) {
  std::vector<double> means(candidates.size());
  std::ranges::transform(candidates, means.begin(), &PlottedCandidate::mean);
  return Axis::of_numbers(metric, means);
}

/// An axis with the standard deviations around the means.
Axis spread_axis(const std::vector<PlottedCandidate>& candidates, const std::string& metric) {
  std::vector<double> ends;
  for (const PlottedCandidate& candidate : candidates)
    for (const double sign : {-1.0, 1.0}) ends.push_back(candidate.mean + sign * candidate.std);
  return Axis::of_numbers(metric, ends);
}

/// An upright axis with its name above it. `anchor`: "end" of labels on its left, "start" on its
/// right.
void add_upright(Drawing& drawing, const Axis& axis, double x, double width, double height,
                 std::string_view anchor = "end") {
  drawing.line(std::array{Point{x, 0}, Point{x, height}}, "class=\"axis\"");
  drawing.text({x, -16}, fitting(axis.name(), width - 8), small_text, "middle");
  for (const auto& [position, label] : axis.ticks())
    drawing.text({x + (anchor == "end" ? -6 : 6), height * (1 - position) + small_text / 3},
                 fitting(label, width - 20), small_text, anchor);
}

}  // namespace

std::string mark_of(const PlottedCandidate& candidate) {
  return fmt::format("class=\"mark{}\" style=\"--score: {:.0f}%\"",
                     candidate.is_early ? " early" : "", 100 * candidate.shade);
}

std::string parallel_coordinates(const std::vector<CandidateAxis>& axes,
                                 const std::vector<PlottedCandidate>& candidates,
                                 const std::string& metric) {
  constexpr double height = 260, least_width = 120;
  const auto gaps = static_cast<double>(axes.size());
  const double width = std::max(least_width, 640 / gaps);
  const Axis scores = mean_axis(candidates, metric);
  Drawing drawing;
  for_each_upwards(candidates, [&](std::size_t i) {
    std::vector<Point> line;
    const auto add = [&](const Axis& axis, double value) {
      line.push_back({width * static_cast<double>(line.size()), height * (1 - axis.at(value))});
    };
    for (const CandidateAxis& axis : axes) add(axis.axis, axis.values[i]);
    add(scores, candidates[i].mean);
    drawing.line(line, mark_of(candidates[i]), candidates[i].title);
  });
  for (std::size_t a = 0; a < axes.size(); ++a)
    add_upright(drawing, axes[a].axis, width * static_cast<double>(a), width, height);
  add_upright(drawing, scores, width * gaps, width, height, "start");
  return drawing.in_page("Parallel coordinates: a line for each candidate");
}

std::string score_by_value(const CandidateAxis& axis,
                           const std::vector<PlottedCandidate>& candidates,
                           const std::string& metric) {
  const Frame frame{axis.axis, spread_axis(candidates, metric), 260, 180};
  Drawing drawing = frame.drawing();
  for_each_upwards(candidates, [&](std::size_t i) {
    const PlottedCandidate& candidate = candidates[i];
    const auto at = [&](double score) { return frame.at(axis.values[i], score); };
    if (candidate.std > 0)
      drawing.line(
          std::array{at(candidate.mean - candidate.std), at(candidate.mean + candidate.std)},
          mark_of(candidate));
    drawing.circle(at(candidate.mean), 4, mark_of(candidate), candidate.title);
  });
  return drawing.in_page(fmt::format("{} by {}", metric, axis.axis.name()));
}

std::string scores_of_runs(const std::vector<PlottedCandidate>& candidates,
                           const std::string& metric) {
  std::vector<std::string> names;
  std::vector<double> scores;
  for (const PlottedCandidate& candidate : candidates) {
    names.insert(names.begin(), candidate.name);  // the best stands above
    scores.insert(scores.end(), candidate.scores.begin(), candidate.scores.end());
  }
  const auto rows = static_cast<double>(names.size());
  const Frame frame{Axis::of_numbers(metric, scores), Axis::of_categories("", names), 480,
                    34 * rows};
  Drawing drawing = frame.drawing();
  for_each_upwards(candidates, [&](std::size_t i) {
    const PlottedCandidate& candidate = candidates[i];
    const double row = rows - 1 - static_cast<double>(i);
    for (const double score : candidate.scores)
      drawing.circle(frame.at(score, row), 4, mark_of(candidate),
                     fmt::format("{}: {:.4f}", candidate.name, score));
    const Point mean = frame.at(candidate.mean, row);
    drawing.line(std::array{Point{mean.x, mean.y - 10}, Point{mean.x, mean.y + 10}},
                 mark_of(candidate), candidate.title);
  });
  return drawing.in_page(metric + " of each run");
}

std::string learning_curves(const std::vector<LearningCurve>& curves,
                            const std::vector<PlottedCandidate>& candidates,
                            const std::string& metric) {
  std::vector<double> steps = {0}, values;
  for (const LearningCurve& curve : curves)
    for (const auto& [step, value] : curve.values) {
      steps.push_back(step);
      values.push_back(value);
    }
  const Frame frame{Axis::of_numbers("step", steps), Axis::of_numbers(metric, values), 600, 300};
  Drawing drawing = frame.drawing();
  for (auto curve = curves.rbegin(); curve != curves.rend(); ++curve) {
    const PlottedCandidate& candidate = candidates[curve->candidate];
    std::vector<Point> line;
    for (const auto& [step, value] : curve->values) line.push_back(frame.at(step, value));
    drawing.line(line, mark_of(candidate),
                 fmt::format("{}, {}: {:.4f} at the end", candidate.name, curve->run,
                             curve->values.back().y));
  }
  return drawing.in_page(metric + " of each run by steps");
}

}  // namespace qkv::commands
