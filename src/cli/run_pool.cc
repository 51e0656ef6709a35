#include "cli/run_pool.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include "cli/child_process.h"
#include "cli/cli.h"
#include "cli/stop_signals.h"
#include "cli/training_options.h"

namespace polyattn::cli {
namespace {

run::Json status_json(const train::Status& status) {
  run::Json json = {{"step", status.step},
                    {"steps", status.steps},
                    {"loss", run::number(status.loss)},
                    {"items_per_second", run::number(status.items_per_second)},
                    {"unit", status.unit},
                    {"evaluating", status.evaluating}};
  if (status.last) json["last"] = train::evaluation_json(*status.last);
  return json;
}

train::Status status_of(const run::Json& json) {
  train::Status status;
  status.step = json.at("step").get<std::int64_t>();
  status.steps = json.at("steps").get<std::int64_t>();
  status.loss = run::number_of(json.at("loss"));
  status.items_per_second = run::number_of(json.at("items_per_second"));
  status.unit = json.at("unit").get<std::string>();
  status.evaluating = json.at("evaluating").get<bool>();
  if (json.contains("last")) {
    status.last = train::evaluation_of(json["last"]);
  }
  return status;
}

// Runs in the child.
void train_in_child(const PlannedRun& planned,
                    const std::shared_ptr<const train::TaskData>& data,
                    const std::string& command, ChildProcess::Out& out) {
  train::train({.config = planned.config,
                .data = data,
                .folder = planned.folder,
                .resume = true,
                .command = command,
                .version = version_number(),
                .stop = [] { return StopSignals::stopped(); },
                .progress =
                    [&](const train::Status& status) {
                      out.send({{"status", status_json(status)}});
                    },
                .warn =
                    [&](const std::string& text) {
                      out.send({{"warning", text}});
                    }});
}

class Pool {
 public:
  Pool(const std::vector<PlannedRun>& runs,
       std::shared_ptr<const train::TaskData> data, const PoolOptions& options,
       TrainBar& bar)
      : runs_(runs),
        data_(std::move(data)),
        options_(options),
        bar_(bar),
        infos_(runs.size()) {}

  std::vector<run::RunInfo> run();

 private:
  struct Active {
    std::size_t run;
    std::unique_ptr<ChildProcess> process;
  };

  void begin_next();
  void listen();
  void hear(const Active& active, const run::Json& message);
  void finish(const Active& active);
  void stop_all();

  const std::vector<PlannedRun>& runs_;
  std::shared_ptr<const train::TaskData> data_;
  const PoolOptions& options_;
  TrainBar& bar_;
  std::vector<std::optional<run::RunInfo>> infos_;
  std::vector<Active> active_;
  std::size_t next_ = 0;
  bool stopping_ = false;
  std::string error_;
};

void Pool::begin_next() {
  const PlannedRun& planned = runs_[next_];
  bar_.begin_run(next_, planned.config.model.activation,
                 planned.config.train.seed);
  active_.push_back(
      {next_++, std::make_unique<ChildProcess>([&](ChildProcess::Out& out) {
         train_in_child(planned, data_, options_.command, out);
       })});
}

void Pool::hear(const Active& active, const run::Json& message) {
  if (message.contains("status")) {
    bar_.update(active.run, status_of(message["status"]));
  } else if (message.contains("warning")) {
    bar_.note(message["warning"].get<std::string>());
  } else if (message.contains("error")) {
    error_ = message["error"].get<std::string>();
  }
}

void Pool::finish(const Active& active) {
  const int code = active.process->wait();
  const auto& folder = runs_[active.run].folder;
  if (code != 0) {
    if (error_.empty()) {
      error_ = "the run in " + folder.string() + " ended without a word (" +
               ChildProcess::describe(code) + ")";
    }
    return;
  }
  infos_[active.run] = run::read_run_info(folder);
  bar_.end_run(active.run, outcome_text(*infos_[active.run]));
}

void Pool::stop_all() {
  if (stopping_) return;
  stopping_ = true;
  for (const Active& active : active_) active.process->signal(SIGTERM);
}

// Hears what the children say, for a moment, and lets go of those that ended.
void Pool::listen() {
  std::vector<pollfd> files;
  for (const Active& active : active_) {
    files.push_back({active.process->file(), POLLIN, 0});
  }
  constexpr int kMilliseconds = 200;
  ::poll(files.data(), files.size(), kMilliseconds);
  for (std::size_t i = active_.size(); i-- > 0;) {
    if (files[i].revents == 0) continue;
    for (const run::Json& message : active_[i].process->receive()) {
      hear(active_[i], message);
    }
    if (!active_[i].process->ended()) continue;
    finish(active_[i]);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<run::RunInfo> Pool::run() {
  while (!active_.empty() || (!stopping_ && next_ < runs_.size())) {
    if (StopSignals::stopped() || !error_.empty()) stop_all();
    while (!stopping_ && next_ < runs_.size() &&
           active_.size() < static_cast<std::size_t>(options_.jobs)) {
      begin_next();
    }
    if (!active_.empty()) listen();
  }
  if (!error_.empty()) throw std::runtime_error(error_);
  std::vector<run::RunInfo> infos;
  for (const auto& info : infos_) {
    if (info) infos.push_back(*info);
  }
  return infos;
}

}  // namespace

std::vector<run::RunInfo> train_runs(
    const std::vector<PlannedRun>& runs,
    const std::shared_ptr<const train::TaskData>& data,
    const PoolOptions& options, TrainBar& bar) {
  return Pool(runs, data, options, bar).run();
}

train::TrialTimes measure_together(
    const run::Config& config,
    const std::shared_ptr<const train::TaskData>& data, int jobs,
    double seconds) {
  std::vector<std::unique_ptr<ChildProcess>> children;
  children.reserve(static_cast<std::size_t>(jobs));
  for (int i = 0; i < jobs; ++i) {
    children.push_back(
        std::make_unique<ChildProcess>([&](ChildProcess::Out& out) {
          const auto times = train::measure_times(config, data, seconds);
          out.send({{"step", times.step}, {"evaluation", times.evaluation}});
        }));
  }
  train::TrialTimes longest;
  for (const auto& child : children) {
    while (!child->ended()) {
      for (const run::Json& message : child->receive()) {
        if (message.contains("error")) {
          throw std::runtime_error(message["error"].get<std::string>());
        }
        longest.step = std::max(longest.step, message.at("step").get<double>());
        longest.evaluation = std::max(longest.evaluation,
                                      message.at("evaluation").get<double>());
      }
    }
    if (const int code = child->wait(); code != 0) {
      throw std::runtime_error("the trial ended without a word (" +
                               ChildProcess::describe(code) + ")");
    }
  }
  return longest;
}

}  // namespace polyattn::cli
