#include "cli/commands/report.h"

#include <fmt/ranges.h>

#include "train/storage/durable_file.h"

namespace qkv::commands {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::string run;
  std::string output;
  std::vector<std::string> sentences;
};

Document report(const ReportOptions& options) {
  require<UserError>(fs::is_directory(options.run),
                     "{} is not a folder; a report is made of a run's or a comparison's folder",
                     options.run);
  const ReportPage page = report_page(options.run, options.sentences);
  const fs::path file =
      options.output.empty() ? RunFolder(options.run).report() : fs::path(options.output);
  // A run's own files lead nowhere else: a link in its folder is replaced.
  if (options.output.empty() && fs::is_symlink(file)) fs::remove(file);
  return written_page(file, page);
}

}  // namespace

Document written_page(const fs::path& file, const ReportPage& page) {
  write_result(file, page.html, {"a page of qkv report", begins_as_report_page});
  Document document;
  document.data = object(
      {{"file", file.string()}, {"bytes", page.html.size()}, {"data_files", page.data_files}});
  const std::string holds =
      page.data_files.empty() ? "" : fmt::format(", holds {}", fmt::join(page.data_files, ", "));
  document.add_text("{}: {:.1f} MB, opens in any browser{}\n", file.string(),
                    static_cast<double>(page.html.size()) / 1e6, holds);
  return document;
}

Command report_command() {
  const auto o = std::make_shared<ReportOptions>();
  return {.name = "report",
          .summary = "Make one HTML page of what a run or a comparison learned",
          .options = {required({"RUN", &o->run, "Folder of a run, or of `qkv compare`"}),
                      {"-o,--output FILE", &o->output, "File to write [RUN/report.html]"},
                      {"--sentence SENTENCE", &o->sentences,
                       "Show the attention of this sentence instead of some from the data; may be "
                       "given several times"},
                      threads_option()},
          .run = [o](const Stream&) { return report(*o); }};
}

}  // namespace qkv::commands
