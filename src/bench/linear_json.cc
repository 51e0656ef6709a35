#include "bench/linear_report.h"
#include "cli/program.h"

namespace polyattn::bench {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json figure_json(const LinearRow& row) {
  Json json{{"name", row.name},
            {"threads", row.threads},
            {"unit", row.unit},
            {"ours", value_or_null(row.ours)},
            {"rival", value_or_null(row.rival)},
            {"rival_is", row.rival_name},
            {"value", row.value ? Json(row.value->median) : Json()},
            {"value_q1", row.value ? Json(row.value->q1) : Json()},
            {"value_q3", row.value ? Json(row.value->q3) : Json()},
            {"value_unit", row.value_unit == "×" ? "ratio" : row.value_unit}};
  const bool least = row.goal && row.goal->bound == Bound::kAtLeast;
  json["bound"] = row.goal ? Json(least ? "at least" : "at most") : Json();
  json["must_reach"] = row.goal ? Json(row.goal->value) : Json();
  json["reached"] = value_or_null(row.reached());
  json["note"] = row.note;
  return json;
}

Json accuracy_json(const AccuracyRow& row) {
  return {{"activation", row.activation},
          {"N", row.n},
          {"D", row.d},
          {"linear_rms", row.linear.rms},
          {"linear_max", row.linear.max},
          {"dense_rms", row.dense.rms},
          {"dense_max", row.dense.max}};
}

Json overflow_json(const OverflowRow& row) {
  return {{"activation", row.activation},
          {"D", row.d},
          {"scaled", row.scaled},
          {"linear", value_or_null(row.linear)},
          {"dense", value_or_null(row.dense)}};
}

Json planner_json(const PlannerRow& row) {
  const BenchCase& c = row.shape;
  return {{"op", name_of(c.op)},
          {"activation", c.activation.to_string()},
          {"N", c.n},
          {"D", c.d},
          {"causal", name_of(c.causal)},
          {"threads", c.threads},
          {"chosen", name_of(row.chosen)},
          {"dense_ms", row.dense_ms},
          {"linear_ms", row.linear_ms},
          {"predicted_dense_ms", row.predicted_dense_ms},
          {"predicted_linear_ms", row.predicted_linear_ms},
          {"loss", row.loss}};
}

template <typename Row>
Json list_json(const std::vector<Row>& rows, Json (*one)(const Row&)) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(one(row));
  return list;
}

}  // namespace

Json linear_json(const LinearReport& report) {
  return {{"target", cli::checked_target()},
          {"figures", list_json(report.rows, figure_json)},
          {"accuracy", list_json(report.accuracy, accuracy_json)},
          {"overflow", list_json(report.overflow, overflow_json)},
          {"planner", list_json(report.planner, planner_json)}};
}

}  // namespace polyattn::bench
