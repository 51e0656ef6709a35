// polyattn dashboard: the page of the report, live, on this machine alone.
#pragma once

#include <string>

#include "cli/command.h"

namespace polyattn::cli {

class DashboardCommand : public Command {
 public:
  explicit DashboardCommand(CLI::App& parent);

  // Until SIGINT or SIGTERM: to stop is what was asked for then.
  int run() override;

 private:
  std::string folder_;
  std::string title_;
  int port_ = 8080;
};

}  // namespace polyattn::cli
