#include "train/run_pool.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include "base/child_process.h"
#include "base/process.h"
#include "base/program.h"
#include "base/stop_signals.h"

namespace polyattn::train {
namespace {

// What a child says of its run, and what the parent understands.
base::Json message_of(const Progress& progress) {
  base::Json json = progress_json(progress);
  json["steps"] = progress.info.steps;
  json["items_per_second"] = base::number(progress.items_per_second);
  json["unit"] = progress.unit;
  json["evaluating"] = progress.evaluating;
  return json;
}

Progress progress_in(const base::Json& message) {
  Progress progress = progress_of(message);
  progress.info.steps = message.at("steps").get<std::int64_t>();
  progress.items_per_second = base::number_of(message.at("items_per_second"));
  progress.unit = message.at("unit").get<std::string>();
  progress.evaluating = message.at("evaluating").get<bool>();
  return progress;
}

// Runs in the child.
void train_in_child(const PlannedRun& planned,
                    const std::shared_ptr<const TaskData>& data,
                    const std::string& command, base::ChildProcess::Out& out) {
  train({.config = planned.config,
         .data = data,
         .folder = planned.folder,
         .resume = true,
         .variant = planned.variant,
         .command = command,
         .version = base::version_number(),
         .stop = [] { return base::StopSignals::stopped(); },
         .progress =
             [&](const Progress& progress) {
               out.send({{"progress", message_of(progress)}});
             },
         .warn =
             [&](const std::string& text) {
               out.send({{"warning", text}});
             }});
}

class Pool {
 public:
  Pool(const std::vector<PlannedRun>& runs,
       std::shared_ptr<const TaskData> data, const PoolOptions& options,
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
    std::unique_ptr<base::ChildProcess> process;
  };

  void begin_next();
  void listen();
  void hear(const Active& active, const base::Json& message);
  void finish(const Active& active);
  void stop_all();

  const std::vector<PlannedRun>& runs_;
  std::shared_ptr<const TaskData> data_;
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
  bar_.begin_run(next_, planned.label, planned.config.train.seed);
  active_.push_back(
      {next_++,
       std::make_unique<base::ChildProcess>([&](base::ChildProcess::Out& out) {
         train_in_child(planned, data_, options_.command, out);
       })});
}

void Pool::hear(const Active& active, const base::Json& message) {
  if (message.contains("progress")) {
    bar_.update(active.run, progress_in(message["progress"]));
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
               base::describe_end(code) + ")";
    }
    return;
  }
  infos_[active.run] = run::read_run_info(folder);
  bar_.end_run(active.run, run::outcome_text(*infos_[active.run]));
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
    for (const base::Json& message : active_[i].process->receive()) {
      hear(active_[i], message);
    }
    if (!active_[i].process->ended()) continue;
    finish(active_[i]);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<run::RunInfo> Pool::run() {
  while (!active_.empty() || (!stopping_ && next_ < runs_.size())) {
    if (base::StopSignals::stopped() || !error_.empty()) stop_all();
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
    const std::shared_ptr<const TaskData>& data, const PoolOptions& options,
    TrainBar& bar) {
  return Pool(runs, data, options, bar).run();
}

TrialTimes measure_together(const run::Config& config,
                            const std::shared_ptr<const TaskData>& data,
                            int jobs, double seconds) {
  std::vector<std::unique_ptr<base::ChildProcess>> children;
  children.reserve(static_cast<std::size_t>(jobs));
  for (int i = 0; i < jobs; ++i) {
    children.push_back(
        std::make_unique<base::ChildProcess>([&](base::ChildProcess::Out& out) {
          const auto times = measure_times(config, data, seconds);
          out.send({{"step", times.step}, {"evaluation", times.evaluation}});
        }));
  }
  TrialTimes longest;
  for (const auto& child : children) {
    while (!child->ended()) {
      for (const base::Json& message : child->receive()) {
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
                               base::describe_end(code) + ")");
    }
  }
  return longest;
}

}  // namespace polyattn::train
