// polyattn report: runs as one HTML page.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "report/page.h"

namespace polyattn::cli {

// What was left out of a report, on standard error.
void tell_of(const std::vector<std::string>& warnings);

// report::write_report() with the page of this build; tells of what was left
// out.
report::Written write_report(const std::vector<std::filesystem::path>& folders,
                             const std::filesystem::path& out,
                             const report::DocumentOptions& options = {});

// The same as an extra to something else, which it must not make fail: where
// the page went, or nothing after a word on standard error about why.
std::optional<std::filesystem::path> write_extra_report(
    const std::vector<std::filesystem::path>& folders,
    const std::filesystem::path& out);

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App& parent);

  int run() override;

 private:
  std::filesystem::path default_output() const;

  std::vector<std::string> folders_;
  std::string out_;
  std::string theory_;
  std::string bench_;
  std::string title_;
  bool json_ = false;
};

}  // namespace polyattn::cli
