// Decoding with sums against decoding with a cache, and whether a step with
// sums takes as long after a million tokens as after a thousand.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

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

// A text of random tokens. Copies share the tokens, not the state.
class Reader {
 public:
  Reader(const char* formula, DecodeMode mode, const LinearSettings& settings)
      : state_({.heads = kHeads, .kv_heads = kHeads, .d = kWidth, .e = kWidth},
               {.activation = Activation::parse(formula), .mode = mode}),
        parallel_(settings.threads),
        tokens_(std::make_shared<Tokens>(settings.run.seed)) {}

  // Reads on without asking, up to this many tokens.
  void read_to(std::int64_t length) {
    while (state_.length(0) < length) {
      const std::int64_t count = std::min(kBlock, length - state_.length(0));
      state_.append(tokens_->rows(tokens_->k, count),
                    tokens_->rows(tokens_->v, count), {}, parallel_);
    }
  }

  StepTimes steps(int count) {
    StepTimes times;
    for (int i = 0; i < count; ++i) {
      const double seconds = seconds_of([&] { step(); }, 1);
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
                 .v = tokens_->rows(tokens_->v, 1)},
                tokens_->o.tensor(), parallel_);
  }

  DecodeState state_;
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
            Reader ours("x^2/sqrt(N)", DecodeMode::kSums, settings);
            Reader cache("softmax", DecodeMode::kCache, settings);
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

// Lengths of 1k and on that are not shortened; the goal is about all of them.
Task constant_task(const LinearSettings& settings) {
  constexpr std::int64_t kFirst = 1024, kLast = std::int64_t{1} << 20;
  constexpr int kTurns = 6;
  std::vector<std::int64_t> lengths;
  for (const std::int64_t n : {kFirst, 16 * kFirst, 256 * kFirst, kLast}) {
    if (n <= settings.longest || lengths.empty()) {
      lengths.push_back(settings.capped(n));
    }
  }
  const std::string name =
      fmt::format("time a token x^2/sqrt(N), context {} to {}, H={} D={}",
                  lengths.front(), lengths.back(), kHeads, kWidth);
  const double effort = 4e-5 * static_cast<double>(lengths.back());
  return {name, effort, [=](Report& report) {
            Reader text("x^2/sqrt(N)", DecodeMode::kSums, settings);
            std::vector<Reader> texts;
            for (const std::int64_t length : lengths) {
              text.read_to(length);
              texts.push_back(text);
              texts.back().steps(1);
            }
            std::vector<std::vector<double>> means(texts.size());
            // Many short rounds, there and back: what is looked for is a few
            // percent.
            for (int i = 0; i < kTurns * settings.run.rounds.rounds; ++i) {
              for (std::size_t k = 0; k < texts.size(); ++k) {
                const std::size_t t = i % 2 == 0 ? k : texts.size() - 1 - k;
                means[t].push_back(texts[t].steps(kSumSteps).mean * kMicro);
              }
            }
            std::vector<double> medians;
            std::string note = "means with folds:";
            for (std::size_t t = 0; t < texts.size(); ++t) {
              medians.push_back(base::spread_of(means[t]).median);
              note += fmt::format(" {:.0f} us at {}", medians[t], lengths[t]);
            }
            const auto [least, most] =
                std::minmax_element(medians.begin(), medians.end());
            report.rows.push_back(
                {.name = name,
                 .threads = settings.threads,
                 .unit = "us",
                 .ours = exactly(*most),
                 .baseline = exactly(*least),
                 .baseline_name = "the fastest context",
                 .measure = Measure::kTimeRatio,
                 .value = exactly(*most / *least),
                 .goal = settings.goal_at(kLast, {Bound::kAtMost, 1.10}),
                 .note = note});
          }};
}

}  // namespace

std::vector<Task> linear_decode_tasks(const LinearSettings& settings) {
  return {step_task(settings, 16384, 4), step_task(settings, 65536, 16),
          constant_task(settings)};
}

}  // namespace polyattn::bench
