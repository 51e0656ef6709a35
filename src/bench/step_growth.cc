#include "bench/step_growth.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "bench/rig.h"
#include "bench/timed.h"
#include "bench/torch_comparisons.h"
#include "train/examples.h"
#include "train/random.h"
#include "train/start.h"

namespace polyattn::bench {
namespace {

constexpr const char* kSoftmax = "softmax";
// What has linear time: polynomials, and softmax by way of landmarks.
constexpr const char* kLinearModels[] = {"x/N", "x^2/N", "x^3/N",
                                         "nystrom softmax"};
constexpr std::string_view kNystrom = "nystrom ";
constexpr double kLinear = 1.1;  // goal of the exponent

// Of one model: at each length, round by round, milliseconds a sequence.
using Times = std::map<std::int64_t, std::vector<double>>;
using AllTimes = std::map<std::string, Times>;

struct Lengths {
  std::vector<std::int64_t> lengths{1024, 4096, 16384};
  std::int64_t tokens = 16384;  // of a step
};

run::Config step_config(std::string activation, std::int64_t length,
                        std::int64_t tokens) {
  run::Config config = run::default_config("imdb");
  config.task.context = length;
  config.model.dim = 64;
  config.model.depth = 2;
  config.model.heads = 2;
  if (activation.starts_with(kNystrom)) {
    config.model.attention = "nystrom";
    activation.erase(0, kNystrom.size());
  }
  config.model.activation = activation;
  config.train.batch = tokens / length;
  config.train.steps = kForever;
  return config;
}

// One batch of noise, for training and for evaluation: sequences without
// padding.
std::shared_ptr<const train::TaskData> noise_sequences(std::int64_t length,
                                                       std::int64_t count,
                                                       std::uint64_t seed) {
  constexpr std::int64_t kBytes = 257;
  train::Random random(seed, train::Stream::kOrder, 0);
  data::SequenceSplits splits;
  splits.vocabulary = kBytes;
  splits.class_names = {"0", "1"};
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      splits.train.tokens.push_back(
          static_cast<std::uint8_t>(1 + random.below(255)));
    }
    splits.train.begin.push_back((i + 1) * length);
    splits.train.labels.push_back(static_cast<std::int32_t>(random.below(2)));
  }
  splits.test = splits.train;
  return std::make_shared<const train::TaskData>(std::move(splits));
}

std::shared_ptr<Rig> make_rig(const std::string& activation,
                              std::int64_t length, std::int64_t tokens,
                              std::uint64_t seed) {
  run::Config config = step_config(activation, length, tokens);
  config.train.seed = static_cast<std::int64_t>(seed);
  const auto data = noise_sequences(length, config.train.batch, seed);
  const auto examples = train::make_examples(data, config);
  auto started = train::start_network(
      config, train::shape_of(*data, config.task), *examples);
  const train::Batch batch = examples->train_batch(0);
  return std::make_shared<Rig>(config, std::move(started.network),
                               [=](std::int64_t) { return batch; });
}

std::string name_of(const std::string& activation, std::int64_t length,
                    std::int64_t tokens) {
  return fmt::format("step of {} x {} tokens, 2 layers of 64, {}",
                     tokens / length, length, activation);
}

std::string growth_name(const std::string& activation) {
  return "growth of a step with N, 2 layers of 64, " + activation;
}

// Those models in linear time of which a row has this in its name.
std::vector<std::string> wanted(const Lengths& lengths,
                                const std::string& only) {
  std::vector<std::string> names;
  for (const char* model : kLinearModels) {
    std::string rows = growth_name(model) + "\n";
    for (const std::int64_t length : lengths.lengths) {
      rows += "peak memory, " + name_of(model, length, lengths.tokens);
      rows += "\n";
    }
    if (rows.find(only) != std::string::npos) names.emplace_back(model);
  }
  return names;
}

Row base_row(const std::string& name, int threads) {
  return {.name = name,
          .threads = threads,
          .baseline_name = "the same model with softmax",
          .note = "processor time",
          .mode = torch_capability()};
}

// All models at one length, by turns.
class LengthTask {
 public:
  LengthTask(const Lengths& lengths, std::int64_t length, int threads,
             const RunOptions& run)
      : lengths_(lengths), length_(length), threads_(threads), run_(run) {}

  void measure(const std::vector<std::string>& models, AllTimes& times,
               Report& report) const {
    const TorchThreads own(threads_);
    std::vector<std::string> names = models;
    names.insert(names.begin(), kSoftmax);
    std::map<std::string, std::shared_ptr<Rig>> rigs;
    std::map<std::string, std::vector<double>> samples, peaks;
    for (const std::string& name : names) {
      rigs[name] = make_rig(name, length_, lengths_.tokens, run_.seed);
      rigs[name]->step();
      peaks[name] = {peak_megabytes([&] { rigs[name]->step(); })};
    }
    for (int round = 0; round < run_.rounds.rounds; ++round) {
      for (const std::string& name : names) {
        samples[name].push_back(milliseconds(*rigs[name]));
      }
    }
    for (const std::string& name : names) {
      for (const double ms : samples[name]) {
        times[name][length_].push_back(ms * static_cast<double>(length_) /
                                       static_cast<double>(lengths_.tokens));
      }
    }
    for (const std::string& name : models) {
      add_rows(name, {samples[name], samples[kSoftmax], {}},
               {peaks[name], peaks[kSoftmax], {}}, report);
    }
  }

 private:
  static double milliseconds(Rig& rig) {
    const double before = processor_seconds();
    rig.step();
    return 1e3 * (processor_seconds() - before);
  }

  void add_rows(const std::string& name, const Samples& times,
                const Samples& peaks, Report& report) const {
    Row speed = base_row(name_of(name, length_, lengths_.tokens), threads_);
    speed.items = static_cast<double>(lengths_.tokens);
    speed.item_name = "tokens";
    summarise(times, speed);
    report.rows.push_back(speed);
    Row memory = base_row("peak memory, " + speed.name, threads_);
    memory.unit = "MB";
    memory.note = "";
    summarise(peaks, memory);
    report.rows.push_back(memory);
  }

  const Lengths& lengths_;
  std::int64_t length_;
  int threads_;
  const RunOptions& run_;
};

Row growth_row(const std::string& name, const Times& times, int threads) {
  std::vector<double> lengths, exponents;
  for (const auto& [length, rounds] : times) {
    lengths.push_back(static_cast<double>(length));
  }
  for (std::size_t i = 0; i < times.begin()->second.size(); ++i) {
    std::vector<double> at_round;
    for (const auto& [length, rounds] : times) at_round.push_back(rounds[i]);
    exponents.push_back(growth_exponent(lengths, at_round));
  }
  Row row{.name = growth_name(name),
          .threads = threads,
          .measure = Measure::kGrowth,
          .value = base::spread_of(exponents),
          .mode = torch_capability()};
  if (name != kSoftmax) row.goal = Goal{Bound::kAtMost, kLinear};
  return row;
}

}  // namespace

std::vector<Task> step_growth_tasks(int threads, const RunOptions& run,
                                    bool quick, const std::string& only) {
  Lengths lengths;
  if (quick) lengths = {{256, 1024}, 1024};
  const std::vector<std::string> models = wanted(lengths, only);
  if (models.empty()) return {};
  const auto times = std::make_shared<AllTimes>();
  std::vector<Task> tasks;
  const auto add = [&](const std::string& name, double effort,
                       const std::function<void(Report&)>& measure) {
    tasks.push_back({name, effort, [=](Report& report) {
                       Report own;
                       measure(own);
                       for (const Row& row : own.rows) {
                         if (row.name.find(only) == std::string::npos) continue;
                         report.rows.push_back(row);
                       }
                     }});
  };
  for (const std::int64_t length : lengths.lengths) {
    add(fmt::format("steps of {} tokens, threads: {}", length, threads), 4,
        [=](Report& report) {
          LengthTask(lengths, length, threads, run)
              .measure(models, *times, report);
        });
  }
  add("growth", 0.1, [=](Report& report) {
    for (const auto& [name, own] : *times) {
      report.rows.push_back(growth_row(name, own, threads));
    }
  });
  return tasks;
}

}  // namespace polyattn::bench
