#include "bench/calibrate.h"

#include <fmt/format.h>

#include <array>

#include "base/text_table.h"
#include "bench/timed.h"
#include "cli/program.h"

namespace polyattn::bench {
namespace {

using Json = nlohmann::ordered_json;

struct CostField {
  const char* name;
  const char* meaning;
  double PathCost::*member;
};

constexpr std::array<CostField, 8> kCostFields = {{
    {"row", "dense: an element of a token", &PathCost::row},
    {"pair", "dense: a query and a key", &PathCost::pair},
    {"pair_width", "dense: and for each element of q and v",
     &PathCost::pair_width},
    {"head", "linear: a sequence of a head", &PathCost::head},
    {"token", "linear: an element of a token", &PathCost::token},
    {"feature", "linear: a feature of a token", &PathCost::feature},
    {"feature_width", "linear: and for each element of v",
     &PathCost::feature_width},
    {"step", "linear: a token of a causal call", &PathCost::step},
}};

Json costs_json(const PathCosts& costs) {
  Json json;
  for (const CostField& field : kCostFields) {
    json["forward"][field.name] = costs.forward.*field.member;
    json["backward"][field.name] = costs.backward.*field.member;
  }
  return json;
}

std::string cost_cell(double nanoseconds) {
  return fmt::format("{:.4g}", nanoseconds);
}

}  // namespace

Calibration calibrate() {
  Calibration c;
  c.file = path_costs_file();
  c.before = read_path_costs_file();
  c.seconds = seconds_of([&] { c.after = measure_path_costs(); }, 1);
  c.written = write_path_costs_file(c.after);
  return c;
}

std::string calibration_text(const Calibration& c) {
  base::TextTable table({{"nanoseconds of one thread", base::Align::kLeft},
                         {"forward before"},
                         {"now"},
                         {"backward before"},
                         {"now"}});
  for (const CostField& field : kCostFields) {
    const auto before = [&](PathCost PathCosts::*direction) {
      return c.before ? cost_cell((*c.before).*direction.*field.member) : "";
    };
    table.add_row({field.meaning, before(&PathCosts::forward),
                   cost_cell(c.after.forward.*field.member),
                   before(&PathCosts::backward),
                   cost_cell(c.after.backward.*field.member)});
  }
  std::string text = table.to_string() +
                     fmt::format("\nMeasured in {:.0f} ms", c.seconds * 1e3);
  if (c.written) return text + fmt::format(", written to\n  {}\n", c.file);
  return text + (c.file.empty()
                     ? ", kept nowhere: set POLYATTN_CACHE to a folder\n"
                     : fmt::format(", but cannot write\n  {}\n", c.file));
}

Json calibration_json(const Calibration& c) {
  return {{"target", cli::checked_target()},
          {"file", c.file.empty() ? Json() : Json(c.file)},
          {"written", c.written},
          {"seconds", c.seconds},
          {"unit", "ns"},
          {"before", c.before ? costs_json(*c.before) : Json()},
          {"after", costs_json(c.after)}};
}

}  // namespace polyattn::bench
