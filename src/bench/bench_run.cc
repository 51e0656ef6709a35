#include "bench/bench_run.h"

#include <algorithm>
#include <cmath>

#include "base/machine.h"
#include "bench/bench_check.h"
#include "bench/rival.h"
#include "bench/timed.h"
#include "cli/program.h"

namespace polyattn::bench {
namespace {

struct Contestants {
  std::optional<Timed> subject, baseline, rival;
};

// The order alternates, so that none always runs on what sgemm left behind.
void run_round(const Contestants& contestants, bool backwards,
               Samples& samples) {
  const auto time = [](const auto& timed, std::vector<double>& into) {
    if (timed) into.push_back(timed->seconds_per_call());
  };
  if (backwards) {
    time(contestants.rival, samples.rival);
    time(contestants.baseline, samples.baseline);
  }
  time(contestants.subject, samples.seconds);
  if (!backwards) {
    time(contestants.baseline, samples.baseline);
    time(contestants.rival, samples.rival);
  }
}

}  // namespace

int rounds_of(const Figure& figure, const RunOptions& options) {
  if (figure.measure == Measure::kExtraBytes) return 1;
  if (figure.baseline) return options.rounds + options.rounds / 2;
  return options.rounds;
}

double effort_of(const Figure& figure, const RunOptions& options) {
  // In flops of one core, which does some 1e11 of them in a second.
  const auto flops = [&](const BenchCase& c) {
    return std::max(flops_of(c) / c.threads, options.min_seconds * 1e11);
  };
  const double size = static_cast<double>(options.sgemm_size);
  const double sgemm = 2 * size * size * size / figure.subject.threads;
  const int rounds = rounds_of(figure, options);
  if (figure.measure == Measure::kExtraBytes) {
    // Backward needs a forward pass first, of two fifths of its size.
    return flops(figure.subject) * 1.4 + 2 * sgemm;
  }
  const double other = flops(figure.baseline.value_or(figure.subject));
  return (rounds + 1) * sgemm + (rounds + 2) * (flops(figure.subject) + other);
}

Bench::Bench(const RunOptions& options) : options_(options) {
  if (have_sgemm()) yardstick_.emplace(options.sgemm_size, options.seed);
}

Measurement Bench::measure(const Figure& figure) {
  Measurement m;
  m.figure = figure;
  m.target = cli::checked_target();
  CaseRunner runner(figure.subject, options_.seed);
  m.extra_bytes = runner.extra_bytes();

  Samples samples;
  const base::PeakMemory peak;
  const double first = seconds_of([&] { runner.run(); }, 1);
  if (const auto growth = peak.growth()) {
    m.peak_bytes = *growth + runner.row_bytes();
  }
  check_against_reference(runner);
  if (figure.measure == Measure::kExtraBytes) {
    // A call takes many seconds: the first one has to do.
    samples.seconds = {first};
    add_sgemm(figure.subject.threads, samples.sgemm);
    add_sgemm(figure.subject.threads, samples.sgemm);
  } else {
    run_rounds(figure, runner, samples);
  }
  summarise(samples, m);
  return m;
}

void Bench::run_rounds(const Figure& figure, CaseRunner& runner,
                       Samples& samples) {
  std::optional<CaseRunner> baseline;
  std::optional<Rival> rival;
  Contestants contestants;
  const double least = options_.min_seconds;
  contestants.subject.emplace([&] { runner.run(); }, least);
  if (figure.baseline) {
    baseline.emplace(*figure.baseline, options_.seed);
    contestants.baseline.emplace([&] { baseline->run(); }, least);
  } else if (Rival::can_do(figure.subject)) {
    rival.emplace(runner);
    contestants.rival.emplace([&] { rival->run(); }, least);
  }
  const int threads = figure.subject.threads;
  const int rounds = rounds_of(figure, options_);
  add_sgemm(threads, samples.sgemm);
  samples.sgemm.clear();  // the first one wakes the threads of OpenBLAS
  add_sgemm(threads, samples.sgemm);
  for (int round = 0; round < rounds; ++round) {
    run_round(contestants, round % 2 == 1, samples);
    add_sgemm(threads, samples.sgemm);
  }
}

void Bench::add_sgemm(int threads, std::vector<double>& gflops) {
  if (yardstick_) gflops.push_back(yardstick_->gflops(threads));
}

}  // namespace polyattn::bench
