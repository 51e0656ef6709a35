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

struct TextField {
  const char* name;
  std::string Row::*member;
};

constexpr TextField kTexts[] = {
    {"name", &Row::name},           {"unit", &Row::unit},
    {"note", &Row::note},           {"mode", &Row::mode},
    {"item_name", &Row::item_name}, {"baseline_name", &Row::baseline_name},
};

struct BytesField {
  const char* name;
  std::optional<std::int64_t> Row::*member;
};

constexpr BytesField kBytes[] = {{"extra_bytes", &Row::extra_bytes},
                                 {"peak_bytes", &Row::peak_bytes}};

// In the order of Measure.
constexpr const char* kMeasures[] = {"sgemm_ratio", "time_ratio", "speedup",
                                     "megabytes", "growth"};

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
  Json json;
  for (const TextField& field : kTexts) json[field.name] = row.*field.member;
  json["threads"] = row.threads;
  json["items"] = row.items;
  if (row.subject) put_case(json, *row.subject);
  for (const SpreadField& field : kSpreads) {
    put_spread(json, field.name, row.*field.member);
  }
  json["measure"] = kMeasures[static_cast<std::size_t>(row.measure)];
  const bool least = row.goal && row.goal->bound == Bound::kAtLeast;
  json["bound"] = row.goal ? Json(least ? "at least" : "at most") : Json();
  json["goal"] = row.goal ? Json(row.goal->value) : Json();
  json["reached"] = value_or_null(row.reached());
  for (const BytesField& field : kBytes) {
    json[field.name] = value_or_null(row.*field.member);
  }
  return json;
}

Row row_of(const Json& json) {
  Row row;
  for (const TextField& field : kTexts) row.*field.member = json.at(field.name);
  row.threads = json.at("threads");
  row.items = json.at("items");
  for (const SpreadField& field : kSpreads) {
    const std::string name = field.name;
    if (json.at(name).is_null()) continue;
    row.*field.member = base::Spread{json.at(name), json.at(name + "_q1"),
                                     json.at(name + "_q3")};
  }
  for (std::size_t i = 0; i < std::size(kMeasures); ++i) {
    if (json.at("measure") == kMeasures[i])
      row.measure = static_cast<Measure>(i);
  }
  if (!json.at("goal").is_null()) {
    const bool least = json.at("bound") == "at least";
    row.goal = Goal{least ? Bound::kAtLeast : Bound::kAtMost, json.at("goal")};
  }
  for (const BytesField& field : kBytes) {
    if (json.at(field.name).is_null()) continue;
    row.*field.member = json.at(field.name).get<std::int64_t>();
  }
  return row;
}

}  // namespace

Json report_json(const Report& report) {
  Json json{{"version", base::version_number()},
            {"target", cli::checked_target()},
            {"rows", Json::array()}};
  for (const Row& row : report.rows) json["rows"].push_back(row_json(row));
  if (!report.accuracy.empty()) json["accuracy"] = report.accuracy;
  if (!report.overflow.empty()) json["overflow"] = report.overflow;
  if (!report.planner.empty()) json["planner"] = report.planner;
  if (!report.time_to_quality.empty()) {
    json["time_to_quality"] = report.time_to_quality;
    json["quality_curves"] = report.quality_curves;
  }
  return json;
}

std::vector<Row> rows_of(const Json& json) {
  std::vector<Row> rows;
  for (const Json& row : json.at("rows")) rows.push_back(row_of(row));
  return rows;
}

}  // namespace polyattn::bench
