#include "train/run/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/message.h"
#include "base/split.h"
#include "base/text_file.h"
#include "base/text_table.h"

namespace polyattn::run {
namespace {

using base::Json;
using base::JsonError;

// More than a page could show.
constexpr std::size_t kMostEntries = 256;

std::int64_t parse_length(const std::string& part) {
  std::int64_t length = 0;
  const char* const end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data(), end, length);
  if (error != std::errc() || rest != end || length < 1 ||
      length > kLongestLength) {
    throw std::invalid_argument(
        fmt::format("{} is no length: numbers from 1 to {}, as 256,1024,4096",
                    base::in_quotes(part), kLongestLength));
  }
  return length;
}

Json figures(const Evaluation& evaluation, Json json) {
  json.update(evaluation_json(evaluation));
  return json;
}

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  throw JsonError(fmt::format("\"{}\" is missing", key));
}

std::int64_t count_at(const Json& object, const char* key, std::int64_t most) {
  const Json& json = member(object, key);
  if (json.is_number_unsigned() && json.get<std::uint64_t>() >= 1 &&
      json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)) {
    return json.get<std::int64_t>();
  }
  throw JsonError(fmt::format("\"{}\" is {}, must be from 1 to {}", key,
                              base::shortened(base::printed(json)), most));
}

std::string string_at(const Json& object, const char* key, std::string_view one,
                      std::string_view other) {
  const Json& json = member(object, key);
  if (json == one || json == other) return json.get<std::string>();
  throw JsonError(fmt::format("\"{}\" is neither {} nor {}", key, one, other));
}

const Json& list_at(const Json& object, const char* key) {
  const Json& json = member(object, key);
  if (!json.is_array() || json.size() > kMostEntries) {
    throw JsonError(fmt::format("\"{}\" is no list of up to {} entries", key,
                                kMostEntries));
  }
  for (const Json& entry : json) {
    if (!entry.is_object()) {
      throw JsonError(fmt::format("an entry of \"{}\" is no object", key));
    }
  }
  return json;
}

std::string figure_cell(const Evaluation& evaluation) {
  if (evaluation.bits_per_byte)
    return fmt::format("{:.3f}", *evaluation.bits_per_byte);
  if (evaluation.accuracy)
    return fmt::format("{:.1f}", 100 * *evaluation.accuracy);
  return fmt::format("{:.3f}", evaluation.loss);
}

// Empty if the length has no such place.
std::string cell_at(const LengthResult& result, std::int64_t to) {
  const auto place =
      std::find_if(result.places.begin(), result.places.end(),
                   [&](const LengthPlace& p) { return p.to == to; });
  return place == result.places.end() ? "" : figure_cell(place->evaluation);
}

template <typename Cell>
void add_row(base::TextTable& table, std::string title, const Lengths& lengths,
             const Cell& cell) {
  std::vector<std::string> row = {std::move(title)};
  for (const LengthResult& result : lengths.lengths) {
    row.push_back(cell(result));
  }
  table.add_row(std::move(row));
}

constexpr std::int64_t kMostTargets = std::int64_t{1} << 53;

Evaluation figures_of(const Json& json) {
  try {
    return evaluation_of(json);
  } catch (const Json::exception&) {
    throw JsonError("\"loss\" is missing");
  }
}

void check_order(const char* key, std::int64_t before, std::int64_t after) {
  if (after > before) return;
  throw JsonError(fmt::format("\"{}\" is {} after {}", key, after, before));
}

LengthResult result_of(const Json& json) {
  LengthResult result{.length = count_at(json, "length", kLongestLength),
                      .count = count_at(json, "count", kMostTargets),
                      .evaluation = figures_of(json)};
  std::int64_t before = 0;
  for (const Json& entry : list_at(json, "places")) {
    result.places.push_back({.to = count_at(entry, "to", result.length),
                             .count = count_at(entry, "count", kMostTargets),
                             .evaluation = figures_of(entry)});
    check_order("to", before, result.places.back().to);
    before = result.places.back().to;
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> parse_length_list(std::string_view text) {
  std::vector<std::int64_t> lengths;
  for (const std::string& part : base::split_at_commas(text)) {
    lengths.push_back(parse_length(part));
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

Json lengths_json(const Lengths& lengths) {
  Json list = Json::array();
  for (const LengthResult& result : lengths.lengths) {
    Json places = Json::array();
    for (const LengthPlace& place : result.places) {
      places.push_back(figures(place.evaluation,
                               {{"to", place.to}, {"count", place.count}}));
    }
    Json json = figures(result.evaluation,
                        {{"length", result.length}, {"count", result.count}});
    json["places"] = std::move(places);
    list.push_back(std::move(json));
  }
  return {{"weights", lengths.weights},
          {"split", lengths.split},
          {"context", lengths.context},
          {"lengths", std::move(list)}};
}

Lengths parse_lengths(std::string_view text) {
  const Json json = base::parse_json(text);
  if (!json.is_object()) throw JsonError("it is no JSON object");
  Lengths lengths{.weights = string_at(json, "weights", "last", "best"),
                  .split = string_at(json, "split", "test", kValidation),
                  .context = count_at(json, "context", kLongestLength)};
  std::int64_t before = 0;
  for (const Json& entry : list_at(json, "lengths")) {
    lengths.lengths.push_back(result_of(entry));
    check_order("length", before, lengths.lengths.back().length);
    before = lengths.lengths.back().length;
  }
  return lengths;
}

const char* lengths_figure(const Lengths& lengths) {
  const bool text = !lengths.lengths.empty() &&
                    lengths.lengths.front().evaluation.bits_per_byte;
  return text ? "bits per byte" : "accuracy in %";
}

std::string lengths_table(const Lengths& lengths) {
  std::vector<base::Column> columns = {{"tokens read", base::Align::kLeft}};
  std::set<std::int64_t> ends;
  for (const LengthResult& result : lengths.lengths) {
    columns.push_back({std::to_string(result.length)});
    for (const LengthPlace& place : result.places) ends.insert(place.to);
  }
  base::TextTable table(columns);
  for (const std::int64_t end : ends) {
    add_row(table, fmt::format("to {}", end), lengths,
            [&](const LengthResult& result) { return cell_at(result, end); });
  }
  add_row(table, "all", lengths, [](const LengthResult& result) {
    return figure_cell(result.evaluation);
  });
  return table.to_string();
}

void write_lengths(const std::filesystem::path& folder,
                   const Lengths& lengths) {
  base::write_text_file(folder / "lengths.json",
                        lengths_json(lengths).dump() + "\n");
}

}  // namespace polyattn::run
