// The way from the bytes of a run's files to JSON, without files: for the
// fuzzer and for tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/maps.h"
#include "report/run_json.h"
#include "report/series.h"
#include "train/run/records.h"

namespace polyattn::report::test {

// The member of "runs" for a run of which metrics.jsonl and maps.json hold
// these bytes. Lines that are damaged, and maps that are, are left out.
inline std::string run_of_bytes(std::string_view metrics, std::string_view maps,
                                std::size_t budget = 20'000) {
  RunSeries series;
  while (!metrics.empty()) {
    const std::size_t end = metrics.find('\n');
    if (end == std::string_view::npos) break;
    try {
      series.add(metrics.substr(0, end));
    } catch (const base::JsonError&) {
    }
    metrics.remove_prefix(end + 1);
  }
  std::string maps_text = "null";
  try {
    const Maps parsed = parse_maps(maps);
    maps_text = parsed.text(parsed.inputs_within(budget));
  } catch (const base::JsonError&) {
  }
  RunFacts facts;
  facts.name = "run";
  return run_json(facts, series, run_budget(budget, 1), maps_text, "null");
}

}  // namespace polyattn::report::test
