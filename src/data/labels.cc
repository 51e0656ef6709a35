#include "data/labels.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/sets.h"

namespace polyattn::data {
namespace {

using Json = nlohmann::json;

// Takes the events of the parser. No tree is built, and the first thing that is
// not expected ends it: a text of a million brackets costs nothing.
class LabelHandler {
 public:
  explicit LabelHandler(const LabelLimits& limits) : limits_(limits) {}

  std::vector<std::int32_t> labels;
  std::string problem;

  bool number_unsigned(std::uint64_t value) {
    if (!in_array_) return is_not_array();
    if (value >= static_cast<std::uint64_t>(limits_.classes)) {
      return out_of_range(fmt::to_string(value));
    }
    if (labels.size() == limits_.max_count) {
      return stop(
          fmt::format("there are more than {} labels", limits_.max_count));
    }
    labels.push_back(static_cast<std::int32_t>(value));
    return true;
  }
  bool number_integer(std::int64_t value) {
    return in_array_ ? out_of_range(fmt::to_string(value)) : is_not_array();
  }
  bool number_float(double /*value*/, const std::string& text) {
    return is_no_label("the number " + text);
  }
  bool null() { return is_no_label("null"); }
  bool boolean(bool /*value*/) { return is_no_label("a truth value"); }
  bool string(std::string& /*value*/) { return is_no_label("a text"); }
  bool binary(Json::binary_t& /*value*/) { return is_no_label("a blob"); }
  bool start_object(std::size_t /*size*/) { return is_no_label("an object"); }
  bool key(std::string& /*name*/) { return is_no_label("a key"); }
  bool end_object() { return is_no_label("the end of an object"); }
  bool start_array(std::size_t /*size*/) {
    if (in_array_) return is_no_label("an array");
    return in_array_ = true;
  }
  bool end_array() { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    return stop(fmt::format("this is not JSON, from byte {} on", position));
  }

 private:
  bool stop(std::string reason) {
    if (problem.empty()) problem = std::move(reason);
    return false;
  }
  bool is_not_array() { return stop("this is not an array of labels"); }
  bool out_of_range(const std::string& value) {
    return stop(fmt::format("label {} is {}, expected is 0 to {}",
                            labels.size(), value, limits_.classes - 1));
  }
  bool is_no_label(const std::string& what) {
    if (!in_array_) return is_not_array();
    return stop(fmt::format("label {} is {}, expected is an integer",
                            labels.size(), what));
  }

  LabelLimits limits_;
  bool in_array_ = false;
};

}  // namespace

std::vector<std::int32_t> parse_labels(std::string_view json,
                                       const LabelLimits& limits,
                                       const std::string& source) {
  LabelHandler handler(limits);
  const bool parsed = Json::sax_parse(json, &handler);
  if (!parsed || !handler.problem.empty()) {
    throw DataError(fmt::format(
        "{}: {}", source,
        handler.problem.empty() ? "this is not JSON" : handler.problem));
  }
  return std::move(handler.labels);
}

}  // namespace polyattn::data
