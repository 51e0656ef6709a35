#include "report/dashboard.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/json_text.h"
#include "report/page.h"

namespace polyattn::report {
namespace {

constexpr const char* kJsonType = "application/json; charset=utf-8";

DocumentOptions document_options(const DashboardOptions& options) {
  DocumentOptions result;
  result.title = options.title;
  result.live = true;
  return result;
}

// The page asks for the runs itself: a page that stays open is to get new ones
// anyway.
std::shared_ptr<const std::string> empty_page(const DashboardOptions& options) {
  if (options.page.empty()) {
    throw std::runtime_error(
        "this build has no page to serve: configure it with "
        "-DPOLYATTN_PAGE=ON, where npm is installed");
  }
  DocumentBuilder builder(document_options(options));
  return std::make_shared<const std::string>(
      fill_page(options.page, builder.build({})));
}

ServerOptions with_handler(ServerOptions options,
                           std::function<Response(const Request&)> handler) {
  options.handler = std::move(handler);
  return options;
}

// A page from elsewhere, which a browser may let ask, but not read the answer.
bool is_foreign(const Request& request) {
  return !request.fetch_site.empty() && request.fetch_site != "same-origin" &&
         request.fetch_site != "none";
}

}  // namespace

Dashboard::Dashboard(const DashboardOptions& options)
    : look_every_(options.look_every),
      page_(empty_page(options)),
      runs_(options.folder, document_options(options)),
      server_(with_handler(options.server, [this](const Request& request) {
        return answer(request);
      })) {
  runs_.refresh();
  warnings_ = runs_.warnings();
}

Response Dashboard::answer(const Request& request) const {
  if (!is_local_host(request.host)) return {.status = 403};
  if (request.path == "/") {
    return {.type = "text/html; charset=utf-8", .body = page_};
  }
  const bool events = request.path == "/api/events";
  const bool report = request.path == "/api/report";
  if (!events && !report && request.path != "/api/runs") return {.status = 404};
  if (is_foreign(request)) return {.status = 403};
  if (events) {
    return {.type = "text/event-stream; charset=utf-8", .events = true};
  }
  const Snapshot snapshot = runs_.snapshot();
  return {.type = kJsonType, .body = report ? snapshot.report : snapshot.runs};
}

void Dashboard::watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  while (!stop.stop_requested()) {
    const std::vector<std::string> changed = runs_.refresh(stop);
    if (!changed.empty() && !stop.stop_requested()) {
      server_.publish("changed", base::printed({{"runs", changed}}));
    }
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, look_every_, [] { return false; });
  }
}

void Dashboard::run(const std::function<bool()>& stopped) {
  std::exception_ptr failure;
  std::jthread watcher([&](const std::stop_token& stop) {
    try {
      watch(stop);
    } catch (...) {
      // Out of memory, say: better no dashboard than one that stands still.
      failure = std::current_exception();
      server_.stop();
    }
  });
  server_.run(stopped);
  watcher.request_stop();
  watcher.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace polyattn::report
