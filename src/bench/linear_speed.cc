// The linear path against sgemm and against our dense kernel, and its memory.
#include <fmt/format.h>
#include <malloc.h>

#include "bench/check.h"
#include "bench/inputs.h"
#include "bench/linear.h"
#include "bench/measure.h"

namespace polyattn::bench {
namespace {

constexpr std::int64_t kShort = 16384, kLong = 65536, kMillion = 1000000;
constexpr std::int64_t kHeadWidth = 64;
constexpr const char* kSquare = "x^2/sqrt(N)";

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

Task sgemm_task(const LinearSettings& settings, Op op, double goal) {
  BenchCase c = linear_case(settings, kSquare, kShort, kHeadWidth);
  c.op = op;
  const Figure figure{
      .name = describe(c),
      .subject = c,
      .goal = settings.goal_at(kShort, {Bound::kAtLeast, goal})};
  return {figure.name, 4, [=](Report& report) {
            Row row = Bench(settings.run).measure(figure);
            if (!row.note.empty()) row.note += "; ";
            row.note += op == Op::kForward ? "counted: 4 N R E flops"
                                           : "counted: 8 N R E flops";
            report.rows.push_back(row);
          }};
}

// The same at a narrower head, R = 136 or 528: as good as at the width of
// sgemm_task(), whose row is there already, to 15 %.
Task narrow_task(const LinearSettings& settings, Op op, std::int64_t width) {
  constexpr double kAsGood = 0.85;
  BenchCase c = linear_case(settings, kSquare, kShort, width);
  c.op = op;
  const Figure figure{.name = describe(c), .subject = c};
  return {figure.name, 2, [=](Report& report) {
            Row row = Bench(settings.run).measure(figure);
            for (const Row& wide : report.rows) {
              if (!wide.subject || !wide.value || wide.subject->op != op ||
                  wide.subject->d != kHeadWidth || wide.subject->n != c.n ||
                  wide.measure != Measure::kSgemmRatio) {
                continue;
              }
              row.goal = settings.goal_at(
                  kShort, {Bound::kAtLeast, kAsGood * wide.value->median});
              row.note = fmt::format("goal: {} of D = {}", kAsGood, kHeadWidth);
            }
            report.rows.push_back(row);
          }};
}

// The dense baseline: the same case, or where that would take too long a part
// of its queries, of which the time is multiplied.
struct DenseBaseline {
  BenchCase shape;
  double times = 1;
  std::string note = {};
};

// Under causality the middle queries meet as many keys as the average one:
// (N + 1) / 2.
DenseBaseline dense_baseline(BenchCase c, std::int64_t part) {
  c.path = Path::kDense;
  if (part >= c.n) return {c};
  const std::int64_t length = c.n;
  c.n = part;
  DenseBaseline dense{c,
                      static_cast<double>(length) / static_cast<double>(part)};
  dense.note = fmt::format("dense: {} queries, times {:g}", part, dense.times);
  if (c.causal != Causal::kNone) {
    dense.shape.causal = Causal::kLast;
    dense.shape.m = length / 2 + part / 2;
    dense.note = fmt::format("dense: the middle {} queries, times {:g}", part,
                             dense.times);
  }
  return dense;
}

Task dense_task(const LinearSettings& settings, const BenchCase& c,
                std::int64_t length, double goal) {
  constexpr std::int64_t kPart = 4096;
  const DenseBaseline baseline = dense_baseline(c, c.n >= kLong ? kPart : c.n);
  return {describe(c), 8, [=](Report& report) {
            CaseRunner ours(c, settings.run.seed);
            CaseRunner dense(baseline.shape, settings.run.seed);
            ours.run();
            check_against_reference(ours);
            Samples samples =
                take_turns({[&] { ours.run(); }, [&] { dense.run(); }},
                           settings.run.rounds);
            for (double& ms : samples.baseline) ms *= baseline.times;
            Row row{.name = describe(c),
                    .threads = settings.threads,
                    .subject = c,
                    .baseline_name = "our dense kernel",
                    .goal = settings.goal_at(length, {Bound::kAtLeast, goal}),
                    .note = baseline.note};
            summarise(samples, row);
            report.rows.push_back(row);
          }};
}

Task memory_task(const LinearSettings& settings) {
  const BenchCase c = linear_case(settings, kSquare, kMillion, kHeadWidth);
  const Figure figure{.name = "memory, " + describe(c),
                      .subject = c,
                      .measure = Measure::kMegabytes,
                      .goal = settings.goal_at(kMillion, {Bound::kAtMost, 64})};
  return {figure.name, 12, [=](Report& report) {
            ::malloc_trim(0);  // pages that free() kept would hide new ones
            Row row = Bench(settings.run).measure(figure);
            if (row.peak_bytes) {
              row.note =
                  fmt::format("resident size and row states {:.1f} MB",
                              static_cast<double>(*row.peak_bytes) / 1e6);
            }
            report.rows.push_back(row);
          }};
}

}  // namespace

std::vector<Task> linear_speed_tasks(const LinearSettings& settings) {
  std::vector<Task> tasks = {sgemm_task(settings, Op::kForward, 0.75),
                             sgemm_task(settings, Op::kBackward, 0.6)};
  for (const Op op : {Op::kForward, Op::kBackward}) {
    for (const std::int64_t width : {std::int64_t{32}, std::int64_t{16}}) {
      tasks.push_back(narrow_task(settings, op, width));
    }
  }
  const auto against_dense = [&](const char* formula, std::int64_t length,
                                 std::int64_t width, double goal) {
    const BenchCase c = linear_case(settings, formula, length, width);
    tasks.push_back(dense_task(settings, c, length, goal));
  };
  against_dense("x/sqrt(N)", kShort, 64, 60);
  against_dense(kSquare, kShort, 64, 5);
  against_dense(kSquare, kLong, 64, 20);
  against_dense("x^3/sqrt(N)", kShort, 16, 8);
  BenchCase causal = linear_case(settings, kSquare, kLong, 64);
  causal.causal = Causal::kFirst;
  tasks.push_back(dense_task(settings, causal, kLong, 8));
  tasks.push_back(memory_task(settings));
  return tasks;
}

}  // namespace polyattn::bench
