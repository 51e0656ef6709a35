#include "theory/report_json.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "theory/study.h"
#include "train/run/records.h"

namespace polyattn::theory {
namespace {

using Json = nlohmann::ordered_json;
using theory::Claim;
using theory::Row;

const char* name_of(theory::Relation relation) {
  switch (relation) {
    case theory::Relation::kAtMost:
      return "at most";
    case theory::Relation::kAtLeast:
      return "at least";
    case theory::Relation::kEqual:
      return "equal";
  }
  return "";
}

const char* name_of(theory::Verdict verdict) {
  switch (verdict) {
    case theory::Verdict::kHolds:
      return "holds";
    case theory::Verdict::kFails:
      return "does not hold";
    case theory::Verdict::kUndecided:
      return "undecided";
    case theory::Verdict::kObserved:
      return "observed";
  }
  return "";
}

Json interval_json(const theory::Interval& interval) {
  return {base::number(interval.low), base::number(interval.high)};
}

Json theory_row_json(const Row& row, bool theorem) {
  Json json{{"compared", row.series}, {"subject", row.subject}};
  json["N"] = row.tokens;
  if (row.tokens_to > 0) json["N_to"] = row.tokens_to;
  json["samples"] = row.samples;
  if (theorem) json["relation"] = name_of(row.relation);
  json["expected"] = base::number(row.expected);
  json["measured"] = base::number(row.measured);
  json["interval_99"] =
      row.interval ? interval_json(*row.interval) : Json(nullptr);
  if (theorem) {
    json["strain"] = base::number(row.strain);
  } else {
    json["ratio"] = base::number(row.measured / row.expected);
  }
  json["verdict"] = name_of(row.verdict);
  return json;
}

Json claim_json(const Claim& claim) {
  const bool theorem = claim.status == theory::Status::kTheorem;
  Json json{{"id", claim.id},
            {"status", theorem ? "theorem" : "observation"},
            {"statement", claim.statement},
            {"computed", claim.computed},
            {"notes", claim.notes}};
  json["holds"] = theorem ? Json(theory::holds(claim)) : Json(nullptr);
  json["rows"] = Json::array();
  for (const Row& row : claim.rows) {
    json["rows"].push_back(theory_row_json(row, theorem));
  }
  return json;
}

}  // namespace

Json theory_json(const theory::StudyOptions& options,
                 const std::vector<Claim>& claims) {
  Json json{{"degrees", options.degrees},
            {"lengths", options.lengths},
            {"width", options.width},
            {"samples", options.samples ? Json(*options.samples) : Json()},
            {"seed", options.seed},
            {"decision_tail", theory::kDecisionTail},
            {"chance_comparisons", theory::chance_comparisons(claims)}};
  json["holds"] = std::all_of(claims.begin(), claims.end(), theory::holds);
  json["claims"] = Json::array();
  for (const Claim& claim : claims) json["claims"].push_back(claim_json(claim));
  return json;
}

Json calibration_json(const theory::CalibrateOptions& options,
                      const theory::Calibration& c) {
  return {{"tokens", options.tokens},
          {"width", options.width},
          {"degree", options.degree},
          {"causal", options.causal},
          {"samples", c.samples},
          {"seed", options.seed},
          {"softmax_norm", base::number(c.softmax_norm.value)},
          {"softmax_norm_interval_99", interval_json(c.softmax_norm.interval)},
          {"fixed",
           {{"constant", base::number(c.fixed.constant.value)},
            {"interval_99", interval_json(c.fixed.constant.interval)},
            {"activation", c.fixed.formula}}},
          {"row",
           {{"constant", base::number(c.row.constant.value)},
            {"interval_99", interval_json(c.row.constant.interval)},
            {"activation", c.row.formula}}}};
}

}  // namespace polyattn::theory
