#include "bench/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace polyattn::bench {
namespace {

std::optional<base::Spread> spread_or_none(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return base::spread_of(values);
}

// None unless both were measured.
std::optional<base::Spread> spread_of_quotients(const std::vector<double>& a,
                                                const std::vector<double>& b) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    values.push_back(a[i] / b[i]);
  }
  return spread_or_none(values);
}

std::vector<double> neighbour_means(const std::vector<double>& sgemm) {
  std::vector<double> means;
  for (std::size_t i = 0; i + 1 < sgemm.size(); ++i) {
    means.push_back((sgemm[i] + sgemm[i + 1]) / 2);
  }
  return means;
}

std::optional<base::Spread> value_of(const Samples& samples, const Row& row) {
  switch (row.measure) {
    case Measure::kSgemmRatio:
      return row.ratio_sgemm;
    case Measure::kTimeRatio:
      return spread_of_quotients(samples.ours, samples.baseline);
    case Measure::kSpeedup:
      return spread_of_quotients(samples.baseline, samples.ours);
    case Measure::kMegabytes:
      return exactly(1e-6 *
                     static_cast<double>(std::max(row.extra_bytes.value_or(0),
                                                  row.peak_bytes.value_or(0))));
    case Measure::kGrowth:  // of several rows: step_growth.cc
      break;
  }
  return std::nullopt;
}

void summarise_rates(const Samples& samples, Row& row) {
  const double flops = flops_of(*row.subject);
  std::vector<double> gflops;
  for (const double ms : samples.ours) gflops.push_back(flops * 1e-6 / ms);
  row.gflops = spread_or_none(gflops);
  row.sgemm = spread_or_none(samples.sgemm);
  row.ratio_sgemm = spread_of_quotients(gflops, neighbour_means(samples.sgemm));
  if (row.measure == Measure::kSgemmRatio) {
    row.speedup = spread_of_quotients(samples.baseline, samples.ours);
  }
}

}  // namespace

std::optional<bool> Row::reached() const {
  if (!value || !goal) return std::nullopt;
  return reaches(*goal, value->median);
}

void summarise(const Samples& samples, Row& row) {
  row.ours = spread_or_none(samples.ours);
  row.baseline = spread_or_none(samples.baseline);
  if (row.subject) summarise_rates(samples, row);
  row.value = value_of(samples, row);
}

base::Spread exactly(double value) { return {value, value, value}; }

std::vector<Row> better_baselines(const std::vector<Row>& a,
                                  const std::vector<Row>& b) {
  if (a.size() != b.size()) {
    throw std::invalid_argument(
        fmt::format("[bench] {} rows != {} rows", a.size(), b.size()));
  }
  std::vector<Row> better;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].threads != b[i].threads) {
      throw std::invalid_argument(
          fmt::format("[bench] row {}, threads: {} != row {}, threads: {}",
                      a[i].name, a[i].threads, b[i].name, b[i].threads));
    }
    better.push_back(b[i].value->median < a[i].value->median ? b[i] : a[i]);
  }
  return better;
}

}  // namespace polyattn::bench
