// Any bytes either are records (metrics.jsonl), maps (maps.json) and solutions
// (solution.json) or throw
// JsonError, never anything else; what is taken becomes JSON that holds
// together, of which no text can end the element of the page that it stands in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "report/maps.h"
#include "report/run_json.h"
#include "report/series.h"
#include "report/solution_text.h"
#include "report/text.h"

namespace {

using polyattn::base::Json;
using polyattn::base::JsonError;
using polyattn::report::Maps;
using polyattn::report::RunSeries;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void check_error(const JsonError& error) {
  const std::string_view what = error.what();
  require(!what.empty() && what.size() < 1000, "a message of any length");
  require(what.find('\n') == std::string_view::npos, "a message of two lines");
}

void check_same_length(const Json& lists, std::size_t length) {
  for (const Json& list : lists) {
    if (!list.is_array()) continue;
    require(list.size() == length, "lists of different lengths");
  }
}

void check_norms(const Json& norms) {
  const std::size_t length = norms["step"].size();
  for (const Json& layer : norms["layers"]) {
    require(layer["grad_norm"].size() == length, "gradients are missing");
    for (const Json& head : layer["heads"]) check_same_length(head, length);
  }
}

void check_start(const Json& start) {
  for (const char* key : {"weight_before", "weight", "softmax"}) {
    require(start[key].size() == start["gain"].size(), "layers are missing");
    for (std::size_t i = 0; i < start[key].size(); ++i) {
      require(start[key][i].size() == start["gain"][i].size(), "or heads");
    }
  }
}

void check_metrics(std::string_view text) {
  RunSeries series;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      series.add(text.substr(0, end));
    } catch (const JsonError& error) {
      check_error(error);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const std::string json = polyattn::report::run_json(
      {}, series, polyattn::report::run_budget(100'000, 1), "null", "null");
  const Json run = polyattn::base::parse_json(json);
  check_same_length(run["train"], run["shown"].get<std::size_t>());
  check_same_length(run["eval"], run["eval"]["step"].size());
  check_norms(run["norms"]);
  if (run.contains("start")) check_start(run["start"]);
  require(run["points"] >= run["shown"], "points out of nothing");
  const Json& steps = run["train"]["step"];
  require(std::is_sorted(steps.begin(), steps.end()), "steps do not ascend");
}

void check_maps(std::string_view text) {
  try {
    const Maps maps = polyattn::report::parse_maps(text);
    require(maps.inputs() > 0, "maps of nothing");
    const std::string all = maps.text(maps.inputs());
    require(all.size() <= maps.bytes(maps.inputs()), "longer than it says");
    const Maps again = polyattn::report::parse_maps(all);
    require(again.text(again.inputs()) == all, "another when read again");
    const std::string safe = polyattn::report::script_safe(all);
    require(safe.find('<') == std::string::npos, "text that ends the element");
    require(Json::parse(safe) == Json::parse(all), "made safe it is another");
  } catch (const JsonError& error) {
    check_error(error);
  }
}

void check_solution(std::string_view text) {
  using polyattn::run::Solution;
  try {
    const Solution solution = polyattn::run::parse_solution(text);
    const std::size_t points =
        solution.columns.values.size() * solution.rows.values.size();
    require(solution.exact.size() == points, "points without a solution");
    require(solution.predicted.size() == points, "points without a prediction");
    const Json again = polyattn::run::solution_json(solution);
    require(polyattn::run::solution_json(
                polyattn::run::parse_solution(again.dump())) == again,
            "another when read again");
    const std::string shown = polyattn::report::solution_text(solution);
    const std::string safe = polyattn::report::script_safe(shown);
    require(safe.find('<') == std::string::npos, "text that ends the element");
    require(Json::parse(safe) == Json::parse(shown), "made safe it is another");
  } catch (const JsonError& error) {
    check_error(error);
  }
}

}  // namespace

// The first byte says which of the three it is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  // A copy, so that the sanitizer sees what is read beyond its end.
  const std::string text(data + 1, data + size);
  if (data[0] == 'm') {
    check_maps(text);
  } else if (data[0] == 's') {
    check_solution(text);
  } else {
    check_metrics(text);
  }
  return 0;
}
