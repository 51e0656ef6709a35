#include "bench/measure.h"

#include <algorithm>

#include "base/machine.h"
#include "bench/check.h"
#include "bench/materialised.h"

namespace polyattn::bench {

int rounds_of(const Figure& figure, const RunOptions& options) {
  const int rounds = options.rounds.rounds;
  if (figure.measure == Measure::kMegabytes) return 1;
  return figure.baseline ? rounds + rounds / 2 : rounds;
}

double effort_of(const Figure& figure, const RunOptions& options) {
  // In flops of one core, which does some 1e11 of them in a second.
  const auto flops = [&](const BenchCase& c) {
    return std::max(flops_of(c) / c.threads, options.rounds.min_seconds * 1e11);
  };
  const double size = static_cast<double>(options.sgemm_size);
  const double sgemm = 2 * size * size * size / figure.subject.threads;
  const int rounds = rounds_of(figure, options);
  if (figure.measure == Measure::kMegabytes) {
    // Backward needs a forward pass first, of two fifths of its size.
    return flops(figure.subject) * 1.4 + 2 * sgemm;
  }
  const double other = flops(figure.baseline.value_or(figure.subject));
  return (rounds + 1) * sgemm + (rounds + 2) * (flops(figure.subject) + other);
}

Bench::Bench(const RunOptions& options) : options_(options) {
  if (have_sgemm()) yardstick_.emplace(options.sgemm_size, options.seed);
}

Row Bench::measure(const Figure& figure) {
  Row row{.name = figure.name,
          .threads = figure.subject.threads,
          .subject = figure.subject,
          .baseline_name = figure.baseline_name,
          .measure = figure.measure,
          .goal = figure.goal};
  CaseRunner runner(figure.subject, options_.seed);
  row.extra_bytes = runner.extra_bytes();

  const base::PeakMemory peak;
  const double first = seconds_of([&] { runner.run(); }, 1);
  if (const auto growth = peak.growth()) {
    row.peak_bytes = *growth + runner.row_bytes();
  }
  check_against_reference(runner);
  Samples samples;
  if (figure.measure == Measure::kMegabytes) {
    // A call takes many seconds: the first one has to do.
    samples.ours = {first * 1e3};
    for (int i = 0; i < 2; ++i) add_sgemm(row.threads, samples.sgemm);
  } else {
    samples = run_rounds(figure, runner, row);
  }
  if (!yardstick_) row.note = "built without OpenBLAS";
  summarise(samples, row);
  return row;
}

Samples Bench::run_rounds(const Figure& figure, CaseRunner& runner, Row& row) {
  std::optional<CaseRunner> baseline;
  std::optional<Materialised> materialised;
  Calls calls{[&] { runner.run(); }};
  if (figure.baseline) {
    baseline.emplace(*figure.baseline, options_.seed);
    calls.baseline = [&] { baseline->run(); };
  } else if (Materialised::can_do(figure.subject)) {
    materialised.emplace(runner);
    calls.baseline = [&] { materialised->run(); };
    row.baseline_name = "materialised";
  }
  std::vector<double> sgemm;
  const Rounds rounds{rounds_of(figure, options_), options_.rounds.min_seconds,
                      clock_for(row.threads)};
  Samples samples = take_turns(calls, rounds, [&] {
    const bool first = sgemm.empty();
    add_sgemm(row.threads, sgemm);
    if (!first) return;
    sgemm.clear();  // the first one wakes the threads of OpenBLAS
    add_sgemm(row.threads, sgemm);
  });
  samples.sgemm = sgemm;
  return samples;
}

void Bench::add_sgemm(int threads, std::vector<double>& gflops) {
  if (yardstick_) gflops.push_back(yardstick_->gflops(threads));
}

}  // namespace polyattn::bench
