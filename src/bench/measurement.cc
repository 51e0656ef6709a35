#include "bench/measurement.h"

#include <algorithm>
#include <cstddef>

namespace polyattn::bench {
namespace {

base::Spread spread_of_quotients(const std::vector<double>& a,
                                 const std::vector<double>& b) {
  std::vector<double> values;
  for (std::size_t i = 0; i < a.size(); ++i) values.push_back(a[i] / b[i]);
  return base::spread_of(values);
}

std::vector<double> neighbour_means(const std::vector<double>& sgemm) {
  std::vector<double> means;
  for (std::size_t i = 0; i + 1 < sgemm.size(); ++i) {
    means.push_back((sgemm[i] + sgemm[i + 1]) / 2);
  }
  return means;
}

std::optional<base::Spread> value_of(const Samples& samples,
                                     const Measurement& m) {
  switch (m.figure.measure) {
    case Measure::kSgemmRatio:
      return m.ratio_sgemm;
    case Measure::kTimeRatio:
      return spread_of_quotients(samples.seconds, samples.baseline);
    case Measure::kSpeedRatio:
      return spread_of_quotients(samples.baseline, samples.seconds);
    case Measure::kExtraBytes: {
      const auto bytes = static_cast<double>(
          std::max(m.extra_bytes, m.peak_bytes.value_or(0)));
      return base::Spread{bytes, bytes, bytes};
    }
  }
  return std::nullopt;
}

}  // namespace

void summarise(const Samples& samples, Measurement& m) {
  const double flops = flops_of(m.figure.subject);
  std::vector<double> gflops;
  for (const double s : samples.seconds) gflops.push_back(flops * 1e-9 / s);
  m.seconds = base::spread_of(samples.seconds);
  m.gflops = base::spread_of(gflops);
  if (!samples.sgemm.empty()) {
    m.sgemm = base::spread_of(samples.sgemm);
    m.ratio_sgemm = spread_of_quotients(gflops, neighbour_means(samples.sgemm));
  }
  if (!samples.baseline.empty()) {
    m.baseline_seconds = base::spread_of(samples.baseline);
  }
  if (!samples.rival.empty()) {
    m.rival_seconds = base::spread_of(samples.rival);
    m.speedup = spread_of_quotients(samples.rival, samples.seconds);
  }
  m.value = value_of(samples, m);
  if (m.value && m.figure.goal) {
    m.reached = reaches(*m.figure.goal, m.value->median);
  }
}

}  // namespace polyattn::bench
