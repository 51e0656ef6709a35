#include "cli/report.h"

#include <fmt/format.h>

#include <exception>

#include "base/output.h"
#include "base/program.h"
#include "report/embedded_page.h"
#include "report/text.h"

namespace polyattn::cli {

void tell_of(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "polyattn: {}\n", report::printable(warning));
  }
}

report::Written write_report(const std::vector<std::filesystem::path>& folders,
                             const std::filesystem::path& out,
                             const report::DocumentOptions& options) {
  report::Written written =
      report::write_report(folders, out, options, report::embedded_page());
  tell_of(written.warnings);
  return written;
}

std::optional<std::filesystem::path> write_extra_report(
    const std::vector<std::filesystem::path>& folders,
    const std::filesystem::path& out) {
  try {
    write_report(folders, out);
    return out;
  } catch (const std::exception& error) {
    fmt::print(stderr, "polyattn: no {}: {}\n", out.filename().string(),
               report::printable(error.what()));
  }
  return std::nullopt;
}

ReportCommand::ReportCommand(CLI::App& parent)
    : Command(parent.add_subcommand("report", "Show runs on one HTML page")) {
  app_->footer(
      "A RUN is the folder of a run, a comparison, or a folder of these. The "
      "page is one\nfile that needs no network; whoever gets it can open "
      "it.\n\n"
      "Examples:\n"
      "  polyattn report runs/cubic\n"
      "  polyattn report runs/compare-* -o compared.html\n"
      "  polyattn theory --json >theory.json\n"
      "  polyattn report runs --theory theory.json --title 'Cubic attention'");
  app_->add_option("run", folders_,
                   "Folders of runs; none are needed beside --theory or "
                   "--bench")
      ->type_name("RUN...");
  app_->add_option("-o,--out", out_,
                   "File to write; default: report.html in the folder, if it "
                   "is one, or else here")
      ->type_name("FILE");
  app_->add_option("--theory", theory_,
                   "Also show what polyattn theory --json printed")
      ->type_name("FILE");
  app_->add_option("--bench", bench_,
                   "Also show what polyattn bench --json printed")
      ->type_name("FILE");
  app_->add_option("--title", title_, "Heading of the page")->type_name("TEXT");
  app_->add_flag("--json", json_,
                 "Print the data of the page instead (docs/report.md)");
}

std::filesystem::path ReportCommand::default_output() const {
  const std::filesystem::path name = "report.html";
  return folders_.size() == 1 ? folders_.front() / name : name;
}

int ReportCommand::run() {
  if (folders_.empty() && theory_.empty() && bench_.empty()) {
    throw base::UsageError("report needs a RUN, --theory or --bench");
  }
  const std::vector<std::filesystem::path> folders(folders_.begin(),
                                                   folders_.end());
  const report::DocumentOptions options{
      .title = title_, .theory = theory_, .bench = bench_};
  if (json_) {
    if (!out_.empty()) {
      throw base::UsageError(
          "--json prints to standard output: leave out --out");
    }
    const report::Document document = report::make_document(folders, options);
    tell_of(document.warnings);
    base::print_text(document.text + "\n");
    return base::kExitDone;
  }
  const std::filesystem::path out =
      out_.empty() ? default_output() : std::filesystem::path(out_);
  const report::Written written = write_report(folders, out, options);
  fmt::print(stderr, "{} {}, {:.0f} KB\n", written.runs,
             written.runs == 1 ? "run" : "runs",
             static_cast<double>(written.bytes) / 1000);
  base::print_text(out.string() + "\n");
  return base::kExitDone;
}

}  // namespace polyattn::cli
