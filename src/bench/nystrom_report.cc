// What `polyattn bench nystrom` prints.
#include <fmt/format.h>

#include <cmath>

#include "base/text_table.h"
#include "bench/nystrom_bench.h"

namespace polyattn::bench {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : "not finite";
}

nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr;
}

}  // namespace

std::string nystrom_text(const NystromStudy& study) {
  using base::Align;
  base::TextTable matrices({{"rows", Align::kLeft},
                            {"activation", Align::kLeft},
                            {"start", Align::kLeft},
                            {"||W||"},
                            {"condition of A"},
                            {"largest of A Z"},
                            {"best of its rank"}});
  base::TextTable inverses({{"rows", Align::kLeft},
                            {"activation", Align::kLeft},
                            {"start", Align::kLeft},
                            {"inverse", Align::kLeft},
                            {"||A Z A - A||"},
                            {"||F Z B - W||"}});
  for (const NystromFigures& c : study.cases) {
    matrices.add_row({c.rows, c.activation, c.start, number(c.norm),
                      number(c.condition), number(c.largest), number(c.best)});
    for (const InverseFigures& i : c.inverses) {
      inverses.add_row({c.rows, c.activation, c.start, i.inverse,
                        number(i.residual), number(i.error)});
    }
  }
  return fmt::format(
      "N = {}, m = {} landmarks, D = {}; W is full attention; medians of {} "
      "heads, norms relative to ||A|| and ||W||\n\n{}\n{}",
      study.tokens, study.landmarks, study.width, study.heads,
      matrices.to_string(), inverses.to_string());
}

nlohmann::ordered_json nystrom_json(const NystromStudy& study) {
  nlohmann::ordered_json json = {{"N", study.tokens},
                                 {"landmarks", study.landmarks},
                                 {"D", study.width},
                                 {"heads", study.heads},
                                 {"cases", nlohmann::ordered_json::array()}};
  for (const NystromFigures& c : study.cases) {
    nlohmann::ordered_json inverses = nlohmann::ordered_json::array();
    for (const InverseFigures& i : c.inverses) {
      inverses.push_back({{"inverse", i.inverse},
                          {"residual", json_number(i.residual)},
                          {"error", json_number(i.error)}});
    }
    json["cases"].push_back({{"rows", c.rows},
                             {"activation", c.activation},
                             {"start", c.start},
                             {"norm", json_number(c.norm)},
                             {"condition", json_number(c.condition)},
                             {"largest", json_number(c.largest)},
                             {"best", json_number(c.best)},
                             {"inverses", inverses}});
  }
  return json;
}

}  // namespace polyattn::bench
