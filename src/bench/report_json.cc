#include "base/program.h"
#include "bench/report.h"
#include "cli/program.h"

namespace polyattn::bench {
namespace {

using Json = nlohmann::ordered_json;

struct SpreadField {
  const char* name;
  std::optional<base::Spread> Row::*member;
};

constexpr SpreadField kSpreads[] = {
    {"ours", &Row::ours},
    {"baseline", &Row::baseline},
    {"value", &Row::value},
    {"speedup", &Row::speedup},
    {"gflops", &Row::gflops},
    {"sgemm_gflops", &Row::sgemm},
    {"ratio_sgemm", &Row::ratio_sgemm},
};

constexpr Measure kMeasures[] = {Measure::kSgemmRatio, Measure::kTimeRatio,
                                 Measure::kSpeedup, Measure::kMegabytes};

const char* measure_name(Measure measure) {
  switch (measure) {
    case Measure::kSgemmRatio:
      return "sgemm_ratio";
    case Measure::kTimeRatio:
      return "time_ratio";
    case Measure::kSpeedup:
      return "speedup";
    case Measure::kMegabytes:
      return "megabytes";
  }
  return "";
}

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

void put_spread(Json& json, const std::string& name,
                const std::optional<base::Spread>& spread) {
  json[name] = spread ? Json(spread->median) : Json();
  json[name + "_q1"] = spread ? Json(spread->q1) : Json();
  json[name + "_q3"] = spread ? Json(spread->q3) : Json();
}

void put_case(Json& json, const BenchCase& c) {
  json.update({{"op", bench::name_of(c.op)},
               {"activation", c.activation.to_string()},
               {"dtype", polyattn::name_of(c.dtype)},
               {"B", c.b},
               {"H", c.h},
               {"G", c.g},
               {"N", c.n},
               {"M", c.m},
               {"D", c.d},
               {"E", c.e},
               {"causal", polyattn::name_of(c.causal)},
               {"stats", c.stats},
               {"path", polyattn::name_of(c.path)}});
}

Json row_json(const Row& row) {
  Json json{{"name", row.name}, {"threads", row.threads}, {"unit", row.unit}};
  if (row.subject) put_case(json, *row.subject);
  for (const SpreadField& field : kSpreads) {
    put_spread(json, field.name, row.*field.member);
  }
  json["baseline_name"] = row.baseline_name;
  json["measure"] = measure_name(row.measure);
  const bool least = row.goal && row.goal->bound == Bound::kAtLeast;
  json["bound"] = row.goal ? Json(least ? "at least" : "at most") : Json();
  json["goal"] = row.goal ? Json(row.goal->value) : Json();
  json["reached"] = value_or_null(row.reached());
  json["note"] = row.note;
  json["mode"] = row.mode;
  json["items"] = row.items;
  json["item_name"] = row.item_name;
  json["extra_bytes"] = value_or_null(row.extra_bytes);
  json["peak_bytes"] = value_or_null(row.peak_bytes);
  return json;
}

template <typename T>
void get_optional(const Json& json, const char* name, std::optional<T>& value) {
  if (!json.at(name).is_null()) value = json.at(name).get<T>();
}

Row row_of(const Json& json) {
  Row row{.name = json.at("name"),
          .threads = json.at("threads"),
          .unit = json.at("unit"),
          .baseline_name = json.at("baseline_name"),
          .note = json.at("note"),
          .mode = json.at("mode"),
          .items = json.at("items"),
          .item_name = json.at("item_name")};
  for (const SpreadField& field : kSpreads) {
    const std::string name = field.name;
    if (json.at(name).is_null()) continue;
    row.*field.member = base::Spread{json.at(name), json.at(name + "_q1"),
                                     json.at(name + "_q3")};
  }
  for (const Measure measure : kMeasures) {
    if (json.at("measure") == measure_name(measure)) row.measure = measure;
  }
  if (!json.at("goal").is_null()) {
    const bool least = json.at("bound") == "at least";
    row.goal = Goal{least ? Bound::kAtLeast : Bound::kAtMost, json.at("goal")};
  }
  get_optional(json, "extra_bytes", row.extra_bytes);
  get_optional(json, "peak_bytes", row.peak_bytes);
  return row;
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
  return {{"op", bench::name_of(c.op)},
          {"activation", c.activation.to_string()},
          {"N", c.n},
          {"D", c.d},
          {"causal", polyattn::name_of(c.causal)},
          {"threads", c.threads},
          {"chosen", polyattn::name_of(row.chosen)},
          {"dense_ms", row.dense_ms},
          {"linear_ms", row.linear_ms},
          {"predicted_dense_ms", row.predicted_dense_ms},
          {"predicted_linear_ms", row.predicted_linear_ms},
          {"loss", row.loss}};
}

template <typename Row>
void put_list(Json& json, const char* name, const std::vector<Row>& rows,
              Json (*one)(const Row&)) {
  for (const Row& row : rows) json[name].push_back(one(row));
}

}  // namespace

Json report_json(const Report& report) {
  Json json{{"version", base::version_number()},
            {"target", cli::checked_target()},
            {"rows", Json::array()}};
  put_list(json, "rows", report.rows, row_json);
  put_list(json, "accuracy", report.accuracy, accuracy_json);
  put_list(json, "overflow", report.overflow, overflow_json);
  put_list(json, "planner", report.planner, planner_json);
  return json;
}

std::vector<Row> rows_of(const Json& json) {
  std::vector<Row> rows;
  for (const Json& row : json.at("rows")) rows.push_back(row_of(row));
  return rows;
}

}  // namespace polyattn::bench
