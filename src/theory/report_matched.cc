#include "theory/report_matched.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/text_table.h"

namespace polyattn::theory {

std::vector<MatchRow> match_rows(const std::vector<std::string>& formulas,
                                 const std::vector<std::int64_t>& lengths,
                                 MatchOptions options) {
  std::vector<MatchRow> rows;
  for (const std::string& formula : formulas) {
    const Activation activation = Activation::parse(formula);
    for (const std::int64_t tokens : lengths) {
      options.tokens = tokens;
      rows.push_back({.activation = activation.to_string(),
                      .tokens = tokens,
                      .match = matched_gain(activation, options)});
    }
  }
  return rows;
}

std::string match_text(const std::vector<MatchRow>& rows,
                       const MatchOptions& options) {
  base::TextTable table({{"activation", base::Align::kLeft},
                         {"N"},
                         {"s"},
                         {"gain"},
                         {"||A||"},
                         {"softmax"},
                         {"unchanged, because", base::Align::kLeft}});
  const auto number = [](double x) { return fmt::format("{:.4g}", x); };
  for (const MatchRow& row : rows) {
    const Match& m = row.match;
    table.add_row({row.activation, std::to_string(row.tokens), number(m.scale),
                   number(m.gain), m.norm ? number(*m.norm) : "-",
                   number(m.softmax_norm), m.reason});
  }
  const std::string target =
      options.factor == 1 ? "" : fmt::format("{:.4g} times ", options.factor);
  return fmt::format(
      "The matched start. Scores are independent, N(0, s^2), now with s = "
      "{:.4g}: the s at\nwhich the root mean square of ||A||_F{} is {}what "
      "softmax has there, and the\ngain of the weights of q and of k that "
      "takes scores to it.\n\n{}",
      options.score_std, options.causal ? ", of the last row," : "", target,
      table.to_string());
}

nlohmann::ordered_json match_json(const std::vector<MatchRow>& rows) {
  base::Json list = base::Json::array();
  for (const MatchRow& row : rows) {
    const Match& m = row.match;
    list.push_back(
        {{"activation", row.activation},
         {"tokens", row.tokens},
         {"scale", m.scale},
         {"gain", m.gain},
         {"norm", m.norm ? base::number(*m.norm) : base::Json(nullptr)},
         {"softmax_norm", m.softmax_norm},
         {"reason",
          m.reason.empty() ? base::Json(nullptr) : base::Json(m.reason)}});
  }
  return list;
}

}  // namespace polyattn::theory
