// polyattn dashboard: the page of the report, live, for one's own machine.
//
//   GET /             the page
//   GET /api/report   the report document, with "live": true
//   GET /api/runs     the list of runs
//   GET /api/events   server-sent events: changed, {"runs": ["name", ...]}
//
// There is nothing else: no other path exists, no path is looked up on the
// disk.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "report/live.h"
#include "report/server.h"

namespace polyattn::report {

struct DashboardOptions {
  std::filesystem::path folder;
  std::string page;  // report/embedded_page.h
  std::string title;
  std::chrono::milliseconds look_every{500};
  // port and limits; the handler is set by the dashboard.
  ServerOptions server;
};

class Dashboard {
 public:
  // Listens, and reads the runs for the first time. Throws std::runtime_error.
  explicit Dashboard(const DashboardOptions& options);

  int port() const { return server_.port(); }
  // About runs, of the first reading.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // As Server::run(), while a thread of its own looks for changes.
  void run(const std::function<bool()>& stopped = {});
  // From any thread.
  void stop() { server_.stop(); }

 private:
  Response answer(const Request& request) const;
  void watch(const std::stop_token& stop);

  std::chrono::milliseconds look_every_;
  std::shared_ptr<const std::string> page_;
  LiveRuns runs_;
  std::vector<std::string> warnings_;
  Server server_;
};

}  // namespace polyattn::report
