// Decoding with sums against decoding with a cache, and whether a step takes as
// long after a million tokens as after a thousand: with sums, with decay, and
// in a window, beside a cache of all.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/inputs.h"
#include "bench/linear.h"
#include "bench/timed.h"
#include "polyattn/decode.h"

namespace polyattn::bench {
namespace {

constexpr std::int64_t kHeads = 8, kWidth = 64;
// Tokens that are read together while a context is made.
constexpr std::int64_t kBlock = 4096;
// Steps of a round with sums: whole periods of folds, of 48 or 96 tokens.
constexpr int kSumSteps = 192;
// A step over a long cache takes some ten milliseconds.
constexpr int kCacheSteps = 16;

struct StepTimes {
  double mean = 0, worst = 0;  // seconds
};

// How a text is decoded.
struct Decoding {
  const char* formula;
  DecodeMode mode;
  std::int64_t window = 0;
  bool decays = false;
};

// A text of random tokens. Copies share the tokens, not the state.
class Reader {
 public:
  Reader(const Decoding& decoding, const LinearSettings& settings)
      : state_({.heads = kHeads, .kv_heads = kHeads, .d = kWidth, .e = kWidth},
               {.activation = Activation::parse(decoding.formula),
                .mode = decoding.mode,
                .window = decoding.window}),
        decays_(decoding.decays),
        clock_(clock_for(settings.threads)),
        parallel_(settings.threads),
        tokens_(std::make_shared<Tokens>(settings.run.seed)) {}

  std::int64_t length() const { return state_.length(0); }
  std::size_t bytes() const { return state_.bytes(); }

  // Reads on without asking, up to this many tokens.
  void read_to(std::int64_t length) {
    while (state_.length(0) < length) {
      const std::int64_t count = std::min(kBlock, length - state_.length(0));
      state_.append(tokens_->rows(tokens_->k, count),
                    tokens_->rows(tokens_->v, count), {}, parallel_,
                    log_decay());
    }
  }

  StepTimes steps(int count) {
    StepTimes times;
    for (int i = 0; i < count; ++i) {
      const double seconds = seconds_of([&] { step(); }, 1, clock_);
      times.mean += seconds / count;
      times.worst = std::max(times.worst, seconds);
    }
    return times;
  }

 private:
  struct Tokens {
    explicit Tokens(std::uint64_t seed) {
      q.fill_normal(seed);
      k.fill_normal(seed + 1);
      v.fill_normal(seed + 2);
    }
    static ConstTensor rows(const Array& array, std::int64_t count) {
      ConstTensor t = array.tensor();
      t.size[2] = count;
      return t;
    }
    Array q{DType::kF32, {1, kHeads, 1, kWidth}};
    Array k{DType::kF32, {1, kHeads, kBlock, kWidth}};
    Array v{DType::kF32, {1, kHeads, kBlock, kWidth}};
    Array o{DType::kF32, {1, kHeads, 1, kWidth}};
  };

  void step() {
    state_.step({.q = tokens_->q.tensor(),
                 .k = tokens_->rows(tokens_->k, 1),
                 .v = tokens_->rows(tokens_->v, 1),
                 .log_decay = log_decay()},
                tokens_->o.tensor(), parallel_);
  }

  // One for all tokens.
  std::optional<ConstTensor> log_decay() const {
    if (!decays_) return {};
    static constexpr double kLogDecay = -1e-3;
    return view(&kLogDecay, {1, 1, 1, 1});
  }

  DecodeState state_;
  bool decays_;
  Clock clock_;
  DefaultParallel parallel_;
  std::shared_ptr<Tokens> tokens_;
};

constexpr double kMicro = 1e6;

Task step_task(const LinearSettings& settings, std::int64_t length,
               double goal) {
  const std::int64_t context = settings.capped(length);
  const std::string name =
      fmt::format("decode step x^2/sqrt(N), context {}, H={} D={}", context,
                  kHeads, kWidth);
  const double effort = 3e-4 * static_cast<double>(context);
  return {name, effort, [=](Report& report) {
            Reader ours({"x^2/sqrt(N)", DecodeMode::kSums}, settings);
            Reader cache({"softmax", DecodeMode::kCache}, settings);
            ours.read_to(context);
            cache.read_to(context);
            ours.steps(1);  // the first steps take room, and touch it
            cache.steps(2);
            Samples samples;
            double worst = 0, worst_cache = 0;
            for (int i = 0; i < settings.run.rounds.rounds; ++i) {
              const StepTimes sums = ours.steps(kSumSteps);
              const StepTimes cached = cache.steps(kCacheSteps);
              samples.ours.push_back(sums.mean * kMicro);
              samples.baseline.push_back(cached.mean * kMicro);
              worst = std::max(worst, sums.worst);
              worst_cache = std::max(worst_cache, cached.worst);
            }
            Row row{.name = name,
                    .threads = settings.threads,
                    .unit = "us",
                    .baseline_name = "our cache, softmax",
                    .goal = settings.goal_at(length, {Bound::kAtLeast, goal})};
            row.note = fmt::format(
                "means with folds; worst step {:.0f} us, of the cache {:.0f} "
                "us",
                worst * kMicro, worst_cache * kMicro);
            summarise(samples, row);
            report.rows.push_back(row);
          }};
}

// A row of its own for each.
struct Growth {
  const char* name;
  Decoding decoding;
  std::int64_t longest = std::int64_t{1} << 20;
  int steps = kSumSteps;
  bool constant = true;
};

constexpr Growth kGrowths[] = {
    {"x^2/sqrt(N)", {"x^2/sqrt(N)", DecodeMode::kSums}},
    {"x^2/sqrt(N) with decay", {"x^2/sqrt(N)", DecodeMode::kSums, 0, true}},
    {"softmax in a window of 256", {"softmax", DecodeMode::kAuto, 256}},
    {"softmax in a cache",
     {"softmax", DecodeMode::kCache},
     131072,
     kCacheSteps,
     false}};

// Lengths of 1k and on that are not shortened; the goal is about all of them.
std::vector<std::int64_t> lengths_of(const Growth& growth,
                                     const LinearSettings& settings) {
  constexpr std::int64_t kFirst = 1024;
  std::vector<std::int64_t> lengths;
  for (const std::int64_t n :
       {kFirst, 16 * kFirst, 128 * kFirst, 1024 * kFirst}) {
    if (n > growth.longest) continue;
    if (n <= settings.longest || lengths.empty())
      lengths.push_back(settings.capped(n));
  }
  return lengths;
}

struct GrowthFigures {
  std::vector<double> micros;      // of a token, at each length
  std::vector<std::size_t> bytes;  // of the state then
};

GrowthFigures measure_growth(const Growth& growth,
                             const std::vector<std::int64_t>& lengths,
                             const LinearSettings& settings) {
  constexpr int kTurns = 6;
  std::vector<Reader> texts = {Reader(growth.decoding, settings)};
  for (const std::int64_t length : lengths) {
    if (texts.back().length() > 0) texts.push_back(texts.back());
    texts.back().read_to(length);
  }
  for (Reader& text : texts) text.steps(1);
  std::vector<std::vector<double>> means(texts.size());
  // Many short rounds, there and back: what is looked for is a few percent.
  for (int i = 0; i < kTurns * settings.run.rounds.rounds; ++i) {
    for (std::size_t k = 0; k < texts.size(); ++k) {
      const std::size_t t = i % 2 == 0 ? k : texts.size() - 1 - k;
      means[t].push_back(texts[t].steps(growth.steps).mean * kMicro);
    }
  }
  GrowthFigures found;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    found.micros.push_back(base::spread_of(means[t]).median);
    found.bytes.push_back(texts[t].bytes());
  }
  return found;
}

Task growth_task(const Growth& growth, const LinearSettings& settings) {
  const std::vector<std::int64_t> lengths = lengths_of(growth, settings);
  const std::string name =
      fmt::format("time a token {}, context {} to {}, H={} D={}", growth.name,
                  lengths.front(), lengths.back(), kHeads, kWidth);
  const double effort = 4e-5 * static_cast<double>(lengths.back());
  return {
      name, effort, [=](Report& report) {
        const GrowthFigures found = measure_growth(growth, lengths, settings);
        std::string note = "means with folds:";
        for (std::size_t t = 0; t < lengths.size(); ++t) {
          note += fmt::format(" {:.0f} us and {:.0f} KB at {}", found.micros[t],
                              static_cast<double>(found.bytes[t]) / 1024,
                              lengths[t]);
        }
        const auto [least, most] =
            std::minmax_element(found.micros.begin(), found.micros.end());
        Row row{.name = name,
                .threads = settings.threads,
                .unit = "us",
                .ours = exactly(*most),
                .baseline = exactly(*least),
                .baseline_name = "the fastest context",
                .measure = Measure::kTimeRatio,
                .value = exactly(*most / *least),
                .note = note};
        if (growth.constant)
          row.goal = settings.goal_at(growth.longest, {Bound::kAtMost, 1.10});
        report.rows.push_back(row);
      }};
}

}  // namespace

std::vector<Task> linear_decode_tasks(const LinearSettings& settings) {
  std::vector<Task> tasks = {step_task(settings, 16384, 4),
                             step_task(settings, 65536, 16)};
  for (const Growth& growth : kGrowths)
    tasks.push_back(growth_task(growth, settings));
  return tasks;
}

}  // namespace polyattn::bench
