#include "cli/dashboard.h"

#include <fmt/format.h>

#include "base/output.h"
#include "base/program.h"
#include "base/stop_signals.h"
#include "cli/report.h"
#include "report/dashboard.h"
#include "report/embedded_page.h"

namespace polyattn::cli {

DashboardCommand::DashboardCommand(CLI::App& parent)
    : Command(parent.add_subcommand(
          "dashboard", "Watch runs in the browser while they go on")) {
  app_->footer(
      "Serves the page of polyattn report on 127.0.0.1, for this machine "
      "alone, until it is\nstopped with Ctrl-C. From another machine, take a "
      "tunnel:\n  ssh -L 8080:localhost:8080 MACHINE\n\n"
      "Examples:\n"
      "  polyattn dashboard runs\n"
      "  polyattn dashboard runs/compare-fashion-mnist --port 0");
  app_->add_option("runs", folder_, "Folder in which runs are, or will be")
      ->required()
      ->type_name("FOLDER");
  app_->add_option("--port", port_, "0: any that is free")
      ->check(CLI::Range(0, 65535).description(""))
      ->capture_default_str();
  app_->add_option("--title", title_, "Heading of the page")->type_name("TEXT");
}

int DashboardCommand::run() {
  const base::StopSignals signals;
  report::DashboardOptions options;
  options.folder = folder_;
  options.page = report::embedded_page();
  options.title = title_;
  options.server.port = port_;
  report::Dashboard dashboard(options);
  tell_of(dashboard.warnings());
  // For whoever reads it from a pipe, on a line of its own.
  base::print_text(fmt::format("http://127.0.0.1:{}/\n", dashboard.port()));
  fmt::print(stderr, "Ctrl-C stops it\n");
  dashboard.run(&base::StopSignals::stopped);
  return base::kExitDone;
}

}  // namespace polyattn::cli
