#include "bench/bench_json.h"

#include <string>

namespace polyattn::bench {
namespace {

using Json = nlohmann::ordered_json;

const char* measure_name(Measure measure) {
  switch (measure) {
    case Measure::kSgemmRatio:
      return "ratio_sgemm";
    case Measure::kTimeRatio:
      return "time_over_baseline";
    case Measure::kSpeedRatio:
      return "speed_over_baseline";
    case Measure::kExtraBytes:
      return "extra_bytes";
  }
  return "";
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void put_spread(Json& object, const std::string& name,
                const std::optional<base::Spread>& spread, double factor = 1) {
  const auto put = [&](const std::string& key, double base::Spread::*member) {
    object[key] = spread ? Json((*spread).*member * factor) : Json(nullptr);
  };
  put(name, &base::Spread::median);
  put(name + "_q1", &base::Spread::q1);
  put(name + "_q3", &base::Spread::q3);
}

Json case_json(const BenchCase& c) {
  return {{"op", bench::name_of(c.op)},
          {"activation", c.activation.to_string()},
          {"dtype", polyattn::name_of(c.dtype)},
          {"B", c.b},
          {"H", c.h},
          {"G", c.g},
          {"N", c.n},
          {"M", c.m},
          {"D", c.d},
          {"E", c.e},
          {"causal", bench::name_of(c.causal)},
          {"stats", c.stats},
          {"path", bench::name_of(c.path)},
          {"threads", c.threads}};
}

void put_goal(Json& object, const Figure& figure) {
  object["bound"] = nullptr;
  object["must_reach"] = nullptr;
  if (!figure.goal) return;
  const bool least = figure.goal->bound == Bound::kAtLeast;
  object["bound"] = least ? "at least" : "at most";
  object["must_reach"] = figure.goal->value;
}

Json measurement_json(const Measurement& m) {
  Json object{{"name", m.figure.name}};
  object.update(case_json(m.figure.subject));
  object["target"] = m.target;
  put_spread(object, "gflops", m.gflops);
  put_spread(object, "sgemm_gflops", m.sgemm);
  put_spread(object, "ratio_sgemm", m.ratio_sgemm);
  object["median_ms"] = m.seconds.median * 1e3;
  object["ms_q1"] = m.seconds.q1 * 1e3;
  object["ms_q3"] = m.seconds.q3 * 1e3;
  object["extra_bytes"] = m.extra_bytes;
  object["peak_bytes"] = or_null(m.peak_bytes);
  put_spread(object, "rival_ms", m.rival_seconds, 1e3);
  put_spread(object, "rival_speedup", m.speedup);
  object["baseline"] =
      m.figure.baseline ? case_json(*m.figure.baseline) : Json(nullptr);
  put_spread(object, "baseline_ms", m.baseline_seconds, 1e3);
  object["figure"] = measure_name(m.figure.measure);
  put_spread(object, "value", m.value);
  put_goal(object, m.figure);
  object["reached"] = or_null(m.reached);
  return object;
}

}  // namespace

Json bench_json(const std::vector<Measurement>& measurements) {
  Json list = Json::array();
  for (const Measurement& m : measurements) {
    list.push_back(measurement_json(m));
  }
  return list;
}

}  // namespace polyattn::bench
