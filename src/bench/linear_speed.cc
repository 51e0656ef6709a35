// The linear path against sgemm and against our dense kernel, and its memory.
#include <fmt/format.h>
#include <malloc.h>

#include "bench/bench_check.h"
#include "bench/bench_inputs.h"
#include "bench/bench_run.h"
#include "bench/linear_bench.h"

namespace polyattn::bench {
namespace {

constexpr std::int64_t kShort = 16384, kLong = 65536, kMillion = 1000000;

BenchCase linear_case(const LinearSettings& settings, const char* formula,
                      std::int64_t length, std::int64_t width) {
  const std::int64_t n = settings.capped(length);
  return {.activation = Activation::parse(formula),
          .n = n,
          .m = n,
          .d = width,
          .e = width,
          .threads = settings.threads,
          .path = Path::kLinear};
}

RunOptions rounds_for(const LinearSettings& settings) {
  return {.rounds = settings.rounds.rounds,
          .min_seconds = settings.rounds.min_seconds,
          .seed = settings.seed,
          .sgemm_size = settings.sgemm_size};
}

LinearTask sgemm_task(const LinearSettings& settings, Op op, double goal) {
  BenchCase c = linear_case(settings, "x^2/sqrt(N)", kShort, 64);
  c.op = op;
  const std::string name = describe(c);
  return {name, 4, [=](LinearReport& report) {
            Figure figure{.name = name, .subject = c};
            const Measurement m = Bench(rounds_for(settings)).measure(figure);
            LinearRow row{.name = name,
                          .threads = settings.threads,
                          .unit = "Gflop/s",
                          .ours = m.gflops.median,
                          .rival_name = "sgemm",
                          .value = m.ratio_sgemm};
            if (m.sgemm) row.rival = m.sgemm->median;
            row.goal = settings.goal_at(kShort, {Bound::kAtLeast, goal});
            row.note = op == Op::kForward ? "counted: 4 N R E flops"
                                          : "counted: 8 N R E flops";
            if (!m.sgemm) row.note += "; built without OpenBLAS";
            report.rows.push_back(row);
          }};
}

// The dense rival: the same case, or where that would take too long a part of
// its queries, of which the time is multiplied.
struct DenseRival {
  BenchCase shape;
  double times = 1;
  std::string note = {};
};

// Under causality the middle queries meet as many keys as the average one:
// (N + 1) / 2.
DenseRival dense_rival(BenchCase c, std::int64_t part) {
  c.path = Path::kDense;
  if (part >= c.n) return {c};
  const std::int64_t length = c.n;
  c.n = part;
  DenseRival rival{c, static_cast<double>(length) / static_cast<double>(part)};
  rival.note = fmt::format("dense: {} queries, times {:g}", part, rival.times);
  if (c.causal != Causal::kNone) {
    rival.shape.causal = Causal::kLast;
    rival.shape.m = length / 2 + part / 2;
    rival.note = fmt::format("dense: the middle {} queries, times {:g}", part,
                             rival.times);
  }
  return rival;
}

LinearTask dense_task(const LinearSettings& settings, const BenchCase& c,
                      std::int64_t length, double goal) {
  constexpr std::int64_t kPart = 4096;
  const DenseRival rival = dense_rival(c, c.n >= kLong ? kPart : c.n);
  return {describe(c), 8, [=](LinearReport& report) {
            CaseRunner ours(c, settings.seed);
            CaseRunner dense(rival.shape, settings.seed);
            ours.run();
            check_against_reference(ours);
            DuelRow duel;
            time_duel({[&] { ours.run(); }, [&] { dense.run(); }},
                      settings.rounds, duel);
            const base::Spread& r = duel.ratio;
            report.rows.push_back(
                {.name = describe(c),
                 .threads = settings.threads,
                 .unit = "ms",
                 .ours = duel.ours.median,
                 .rival = duel.theirs.median * rival.times,
                 .rival_name = "our dense kernel",
                 .value = base::Spread{r.median * rival.times,
                                       r.q1 * rival.times, r.q3 * rival.times},
                 .goal = settings.goal_at(length, {Bound::kAtLeast, goal}),
                 .note = rival.note});
          }};
}

LinearTask memory_task(const LinearSettings& settings) {
  const BenchCase c = linear_case(settings, "x^2/sqrt(N)", kMillion, 64);
  const std::string name = "memory, " + describe(c);
  return {name, 12, [=](LinearReport& report) {
            constexpr double kMB = 1e6;
            Figure figure{.name = name, .subject = c};
            figure.measure = Measure::kExtraBytes;
            ::malloc_trim(0);  // pages that free() kept would hide new ones
            const Measurement m = Bench(rounds_for(settings)).measure(figure);
            LinearRow row{.name = name,
                          .threads = settings.threads,
                          .unit = "MB",
                          .ours = m.value->median / kMB,
                          .value_unit = "MB"};
            row.value = base::Spread{*row.ours, *row.ours, *row.ours};
            row.goal = settings.goal_at(kMillion, {Bound::kAtMost, 64});
            row.note = fmt::format("workspace and row states {:.1f} MB",
                                   static_cast<double>(m.extra_bytes) / kMB);
            if (m.peak_bytes) {
              row.note += fmt::format(", resident size and row states {:.1f}",
                                      static_cast<double>(*m.peak_bytes) / kMB);
            }
            row.note += fmt::format("; {:.2f} s a call", m.seconds.median);
            report.rows.push_back(row);
          }};
}

}  // namespace

std::vector<LinearTask> linear_speed_tasks(const LinearSettings& settings) {
  const char* square = "x^2/sqrt(N)";
  std::vector<LinearTask> tasks = {sgemm_task(settings, Op::kForward, 0.75),
                                   sgemm_task(settings, Op::kBackward, 0.6)};
  const auto against_dense = [&](const char* formula, std::int64_t length,
                                 std::int64_t width, double goal) {
    const BenchCase c = linear_case(settings, formula, length, width);
    tasks.push_back(dense_task(settings, c, length, goal));
  };
  against_dense("x/sqrt(N)", kShort, 64, 60);
  against_dense(square, kShort, 64, 5);
  against_dense(square, kLong, 64, 20);
  against_dense("x^3/sqrt(N)", kShort, 16, 8);
  BenchCase causal = linear_case(settings, square, kLong, 64);
  causal.causal = Causal::kFirst;
  tasks.push_back(dense_task(settings, causal, kLong, 8));
  tasks.push_back(memory_task(settings));
  return tasks;
}

}  // namespace polyattn::bench
