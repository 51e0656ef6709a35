// The dashboard over real sockets: what is served, to whom, and how it follows
// the runs.
#include "report/dashboard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "client.h"
#include "report/page.h"
#include "support.h"

namespace polyattn::report {
namespace dashboard_test {

namespace fs = std::filesystem;
using base::Json;
using test::body_of;
using test::Client;
using test::eval_line;
using test::exchange;
using test::finished_run;
using test::get_text;
using test::message_of;
using test::small_maps;
using test::status_of;
using test::TemporaryFolder;
using test::train_line;
using test::write_small_run;
using test::write_text;

const std::string kStub = "<html>" + std::string(kPlaceholder) + "</html>";

DashboardOptions options_for(const fs::path& folder) {
  DashboardOptions options;
  options.folder = folder;
  options.page = kStub;
  options.look_every = std::chrono::milliseconds(1);
  return options;
}

class DashboardTest : public testing::Test {
 protected:
  DashboardTest() { fs::create_directory(runs()); }
  ~DashboardTest() override { stop(); }

  fs::path runs() const { return folder_ / "runs"; }

  void start() {
    dashboard_ = std::make_unique<Dashboard>(options_for(runs()));
    thread_ = std::thread([this] { dashboard_->run(); });
  }
  void stop() {
    if (dashboard_) dashboard_->stop();
    if (thread_.joinable()) thread_.join();
  }

  int port() const { return dashboard_->port(); }
  std::string get(const std::string& path) const {
    return exchange(port(), get_text(path));
  }
  Json json(const std::string& path) const {
    return base::parse_json(body_of(get(path)));
  }

  // Listens to events.
  std::unique_ptr<Client> listener() const {
    auto client = std::make_unique<Client>(port());
    client->send(get_text("/api/events"));
    client->until("retry: 2000\n\n");
    client->forget();
    return client;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Dashboard> dashboard_;
  std::thread thread_;
};

TEST_F(DashboardTest, ServesPageDocumentAndList) {
  write_small_run(runs() / "c/softmax-seed1", finished_run("softmax", 1, 0.5));
  start();
  const std::string page = get("/");
  EXPECT_EQ(status_of(page), "HTTP/1.1 200 OK");
  EXPECT_NE(page.find("Content-Type: text/html; charset=utf-8"),
            std::string::npos);
  std::string document = body_of(page);
  ASSERT_EQ(document.rfind("<html>", 0), 0U);
  document = document.substr(6, document.size() - 13);
  EXPECT_EQ(base::parse_json(document)["live"], true);
  EXPECT_EQ(base::parse_json(document)["runs"], Json::array());

  const Json report = json("/api/report?since=3");
  EXPECT_EQ(report["live"], true);
  ASSERT_EQ(report["runs"].size(), 1U);
  EXPECT_EQ(report["runs"][0]["name"], "c/softmax-seed1");

  Json list = json("/api/runs");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["updated"].get<std::string>().size(), 20U);
  list[0].erase("updated");
  EXPECT_EQ(
      list[0],
      Json({{"name", "c/softmax-seed1"},
            {"folder", (fs::canonical(runs()) / "c/softmax-seed1").string()},
            {"task", "fashion-mnist"},
            {"activation", "softmax"},
            {"seed", 1},
            {"state", "finished"},
            {"step", 100},
            {"steps", 100},
            {"loss", 0.5}}));
}

TEST_F(DashboardTest, OtherNamesOfThisMachineAreRefused) {
  start();
  for (const char* path : {"/", "/api/report", "/api/runs", "/api/events"}) {
    EXPECT_EQ(status_of(exchange(
                  port(), get_text(path, "Host: evil.example:8080\r\n"))),
              "HTTP/1.1 403 Forbidden")
        << path;
  }
  for (const char* host : {"127.0.0.1", "localhost:9999", "[::1]:8080"}) {
    const std::string header = std::string("Host: ") + host + "\r\n";
    EXPECT_EQ(status_of(exchange(port(), get_text("/api/runs", header))),
              "HTTP/1.1 200 OK")
        << host;
  }
}

TEST_F(DashboardTest, PagesFromElsewhereGetNoData) {
  start();
  const auto status = [&](const char* path, const char* site) {
    const std::string headers =
        std::string("Host: localhost\r\nSec-Fetch-Site: ") + site + "\r\n";
    return status_of(exchange(port(), get_text(path, headers)));
  };
  for (const char* site : {"cross-site", "same-site", "nonsense"}) {
    for (const char* path : {"/api/report", "/api/runs", "/api/events"}) {
      EXPECT_EQ(status(path, site), "HTTP/1.1 403 Forbidden") << path << site;
    }
    // A link to the page works.
    EXPECT_EQ(status("/", site), "HTTP/1.1 200 OK");
  }
  EXPECT_EQ(status("/api/report", "same-origin"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status("/api/report", "none"), "HTTP/1.1 200 OK");
}

TEST_F(DashboardTest, NothingElseExists) {
  folder_.write("secret", "secret");
  write_small_run(runs() / "a", finished_run("softmax", 1, 0.5));
  start();
  for (const char* path :
       {"/../secret", "/api/../../secret", "/%2e%2e/secret", "/..%2fsecret",
        "/a/run.json", "/runs/a/run.json", "/api/report/", "//", "/api",
        "/api/report%00", "/index.html", "/favicon.ico", "/./", "/?/../x/..",
        "/api/events/../report"}) {
    const std::string status = status_of(get(path));
    if (std::string(path) == "/?/../x/..") {
      EXPECT_EQ(status,
                "HTTP/1.1 200 OK");  // a query, of which nothing is read
    } else {
      EXPECT_EQ(status, "HTTP/1.1 404 Not Found") << path;
    }
  }
  EXPECT_EQ(status_of(get("../secret")), "HTTP/1.1 400 Bad Request");
}

TEST_F(DashboardTest, NothingOutsideIsRead) {
  write_small_run(folder_ / "outside/b", finished_run("secret", 1, 0.5));
  const fs::path secret = folder_.write("secret", "secret");
  write_small_run(runs() / "a", finished_run("softmax", 1, 0.5));
  for (const char* name : {"config.toml", "metrics.jsonl", "maps.json"}) {
    fs::remove(runs() / "a" / name);
    fs::create_symlink(secret, runs() / "a" / name);
  }
  fs::create_directory_symlink(folder_ / "outside", runs() / "link");
  fs::create_directory(runs() / "c");
  fs::create_symlink(folder_ / "outside/b/run.json", runs() / "c/run.json");
  start();
  const std::string report = body_of(get("/api/report"));
  EXPECT_EQ(report.find("secret"), std::string::npos) << report;
  const Json json = base::parse_json(report);
  ASSERT_EQ(json["runs"].size(), 1U);
  EXPECT_EQ(json["runs"][0]["config"], "");
  EXPECT_EQ(json["runs"][0]["points"], 0);
  EXPECT_EQ(dashboard_->warnings().size(), 5U);
}

TEST_F(DashboardTest, PicksUpWhatAppears) {
  start();
  EXPECT_EQ(json("/api/runs"), Json::array());
  const auto events = listener();
  write_small_run(folder_ / "made", finished_run("softmax", 1, 0.5));
  fs::rename(folder_ / "made", runs() / "new <b>\"");
  EXPECT_EQ(events->until("\n\n"),
            "event: changed\ndata: {\"runs\":[\"new <b>\\\"\"]}\n\n");
  // The document is there before the event is.
  EXPECT_EQ(json("/api/report")["runs"].size(), 1U);
}

TEST_F(DashboardTest, TellsWhenRecordsGrow) {
  write_small_run(runs() / "a", finished_run("softmax", 1, 0.5));
  write_small_run(runs() / "b", finished_run("softmax", 2, 0.5));
  start();
  const auto events = listener();
  for (int step = 120; step <= 160; step += 20) {
    std::ofstream(runs() / "a/metrics.jsonl", std::ios::app)
        << train_line(step, 0.5);
    EXPECT_EQ(events->until("\n\n"),
              "event: changed\ndata: {\"runs\":[\"a\"]}\n\n");
    events->forget();
    EXPECT_EQ(json("/api/report")["runs"][0]["train"]["step"].back(), step);
  }
}

TEST_F(DashboardTest, TellsWhenARunEndsOrVanishes) {
  run::RunInfo info = finished_run("softmax", 1, 0.5);
  info.state = run::RunState::kRunning;
  write_small_run(runs() / "a", info);
  start();
  const auto events = listener();
  EXPECT_EQ(json("/api/runs")[0]["state"], "running");
  info.state = run::RunState::kFinished;
  run::write_run_info(runs() / "a", info);
  events->until("\n\n");
  EXPECT_EQ(json("/api/runs")[0]["state"], "finished");
  fs::rename(runs() / "a", folder_ / "elsewhere");
  do {
    events->until("\n\n");
    events->forget();
  } while (!json("/api/runs").empty());
  EXPECT_EQ(json("/api/report")["runs"], Json::array());
}

TEST_F(DashboardTest, ADamagedRunComesBackWhenItIsMended) {
  write_small_run(runs() / "a", finished_run("softmax", 1, 0.5));
  const std::string text = test::read_text(runs() / "a/run.json");
  write_text(runs() / "a/run.json", "{");
  start();
  EXPECT_EQ(json("/api/runs"), Json::array());
  const auto events = listener();
  write_text(folder_ / "mended", text);
  fs::rename(folder_ / "mended", runs() / "a/run.json");
  events->until("\n\n");
  EXPECT_EQ(json("/api/runs").size(), 1U);
}

TEST_F(DashboardTest, StopsWhileClientsHangOn) {
  start();
  const auto events = listener();
  Client half(port());
  half.send("GET /api");
  stop();
  EXPECT_EQ(events->rest(), "");
  half.rest();
}

TEST_F(DashboardTest, NeedsAFolderAndAPage) {
  EXPECT_NE(message_of<std::runtime_error>(
                [&] { Dashboard{options_for(folder_ / "absent")}; }),
            "");
  DashboardOptions options = options_for(runs());
  options.page.clear();
  EXPECT_NE(message_of<std::runtime_error>([&] {
              Dashboard{options};
            }).find("POLYATTN_PAGE=ON"),
            std::string::npos);
}

TEST(LiveRuns, ReadsOnlyWhatHasChanged) {
  const TemporaryFolder folder;
  write_small_run(folder / "a", finished_run("softmax", 1, 0.5));
  write_small_run(folder / "b", finished_run("x", 1, 0.5));
  LiveRuns runs(folder.path(), {});
  EXPECT_EQ(runs.refresh(), (std::vector<std::string>{"a", "b"}));
  const Snapshot first = runs.snapshot();
  EXPECT_TRUE(runs.refresh().empty());
  EXPECT_EQ(runs.snapshot().report, first.report);  // the very same
  write_text(folder / "b/maps.json", small_maps().dump());
  EXPECT_EQ(runs.refresh(), (std::vector<std::string>{"b"}));
  const Json json = base::parse_json(*runs.snapshot().report);
  EXPECT_EQ(json["runs"][1]["maps"], small_maps());
  EXPECT_EQ(json["runs"][0]["maps"], nullptr);
}

}  // namespace dashboard_test
}  // namespace polyattn::report
