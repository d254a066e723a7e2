#include "cli/commands/search_page.h"

#include <algorithm>

#include "inspect/report/loaded_run.h"
#include "inspect/report/page.h"
#include "train/metrics/metrics.h"

namespace qkv::commands {
namespace {

/// " ± 0.0100"; empty for one run.
std::string std_text(const PlottedCandidate& candidate) {
  return candidate.scores.size() > 1 ? fmt::format(" ± {:.4f}", candidate.std) : "";
}

/// "3", or "1 of 3" where a candidate was left out.
std::string count_of(const PlottedCandidate& candidate, std::size_t most) {
  const std::size_t count = candidate.scores.size();
  return count < most ? fmt::format("{} of {}", count, most) : fmt::format("{}", count);
}

/// `best` and `worst`: the ranks of these candidates; `most`: the runs of one that was not left
/// out.
PlottedCandidate plotted(const CandidateResult& candidate, const SearchPage& page, double best,
                         double worst, std::size_t most) {
  PlottedCandidate plotted{.name = candidate.name, .scores = candidate.scores(page.metric)};
  plotted.mean = mean_of(plotted.scores);
  plotted.std = sample_std(plotted.scores);
  if (best > worst) plotted.shade = (candidate.rank(page.metric) - worst) / (best - worst);
  plotted.is_early = plotted.scores.size() < most;
  plotted.title = fmt::format("{}: {} {:.4f}{}, {} {}{}", candidate.name, page.metric, plotted.mean,
                              std_text(plotted), count_of(plotted, most), page.runs,
                              plotted.is_early ? ", left out early" : "");
  return plotted;
}

std::vector<PlottedCandidate> all_plotted(const SearchPage& page,
                                          const std::vector<CandidateResult>& candidates) {
  std::vector<double> ranks(candidates.size());
  std::ranges::transform(candidates, ranks.begin(), [&](const CandidateResult& candidate) {
    return candidate.rank(page.metric);
  });
  const auto [worst, best] = std::ranges::minmax(ranks);
  std::vector<PlottedCandidate> all;
  all.reserve(candidates.size());
  for (const CandidateResult& candidate : candidates)
    all.push_back(plotted(candidate, page, best, worst, candidates.front().runs.size()));
  return all;
}

std::string cell(const std::string& text) {
  return fmt::format("<td>{}</td>", xml(text));
}

std::string table_of(const SearchPage& page, const std::vector<CandidateResult>& candidates,
                     const std::vector<PlottedCandidate>& plotted) {
  std::string head = "<th scope=\"col\">candidate</th>", rows;
  const auto add_head = [&](const std::string& name) {
    head += fmt::format("<th scope=\"col\">{}</th>", xml(name));
  };
  for (const CandidateAxis& axis : page.axes) add_head(axis.axis.name());
  for (const std::string& name : {page.metric, page.runs, std::string("parameters")})
    add_head(name);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const PlottedCandidate& shown = plotted[i];
    rows += fmt::format("<tr{}><th scope=\"row\"><span {}><i class=\"dot\"></i></span>{}</th>",
                        shown.is_early ? " class=\"early\"" : "", mark_of(shown),
                        xml(page.axes.empty() ? shown.name : std::to_string(i + 1)));
    for (const CandidateAxis& axis : page.axes) rows += cell(axis.texts[i]);
    rows += cell(fmt::format("{:.4f}", shown.mean) + std_text(shown)) +
            cell(count_of(shown, plotted.front().scores.size())) +
            cell(std::to_string(candidates[i].runs.front().parameters)) + "</tr>\n";
  }
  return fmt::format("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>", head,
                     rows);
}

/// A box that scrolls by itself where a screen is narrow.
std::string box(const std::string& name, std::string_view classes, const std::string& content) {
  return fmt::format(
      "<div class=\"scroll {}\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n{}</div>\n",
      classes, xml(name), content);
}

std::string section(const std::string& title, const std::string& content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", title, content);
}

std::string option_sections(const SearchPage& page, const std::vector<PlottedCandidate>& plotted) {
  if (page.axes.empty())
    return section("Scores", box("Scores", "plot wide", scores_of_runs(plotted, page.metric)));
  std::string plots;
  for (const CandidateAxis& axis : page.axes)
    plots +=
        "<div class=\"scroll plot\">" + score_by_value(axis, plotted, page.metric) + "</div>\n";
  return section("Options and score", box("Options and score", "plot wide",
                                          parallel_coordinates(page.axes, plotted, page.metric))) +
         section("Score by option", "<div class=\"plots\">\n" + plots + "</div>\n");
}

/// The values of a metric in a run's metrics.jsonl, at most 200.
std::vector<Point> values_of(const std::filesystem::path& file, std::string_view split,
                             const std::string& metric) {
  constexpr std::size_t most = 200;
  std::vector<Point> all, some;
  for (const MetricsEvent& event : read_metrics(file).events) {
    if (event.split != split) continue;
    const Json line = Json::parse(event.json);
    if (line.contains(metric) && line[metric].is_number())
      all.push_back({static_cast<double>(event.step), line[metric].get<double>()});
  }
  for (const std::size_t i : report::spread(all.size(), most)) some.push_back(all[i]);
  return some;
}

/// The curves of all runs that were measured more than once; those of an ensemble are its members'.
std::vector<LearningCurve> curves_of(const std::vector<CandidateResult>& candidates,
                                     std::string_view split, const std::string& metric) {
  std::vector<LearningCurve> curves;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].members.size() > 1) continue;
    for (const VariantRun& run : candidates[i].runs) {
      auto values = values_of(RunFolder(run.folder).metrics(), split, metric);
      if (values.size() > 1) curves.push_back({i, name_of(run), std::move(values)});
    }
  }
  return curves;
}

/// The metric on the validation data, else the training loss.
std::string curve_section(const SearchPage& page, const std::vector<CandidateResult>& candidates,
                          const std::vector<PlottedCandidate>& plotted) {
  std::string name = "valid " + page.metric;
  auto curves = curves_of(candidates, "valid", page.metric);
  if (curves.empty()) {
    name = "train loss";
    curves = curves_of(candidates, "train", "loss");
  }
  if (curves.empty()) return "";
  return section("Learning curves",
                 box("Learning curves", "plot wide", learning_curves(curves, plotted, name)));
}

/// A sentence that explains the marks.
std::string introduction(const SearchPage& page, const std::vector<PlottedCandidate>& plotted) {
  const bool has_early = std::ranges::any_of(plotted, &PlottedCandidate::is_early);
  return fmt::format(
      "<p class=\"lead\">{} candidates, the best {} first. The stronger a colour, the better the "
      "candidate; hover over a mark to see which one it is.{}</p>\n",
      plotted.size(), xml(page.metric),
      has_early ? " Dashed lines and hollow circles are candidates that were left out early." : "");
}

}  // namespace

std::string search_page(const SearchPage& page, const std::vector<CandidateResult>& candidates) {
  const auto plotted = all_plotted(page, candidates);
  return report::plain_page(
      in_one_line(page.title),
      introduction(page, plotted) +
          section("Candidates", box("Candidates", "", table_of(page, candidates, plotted))) +
          option_sections(page, plotted) + curve_section(page, candidates, plotted));
}

}  // namespace qkv::commands
