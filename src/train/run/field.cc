#include <fmt/format.h>

#include <array>
#include <cmath>

#include "train/run/fields.h"

namespace polyattn::run {
namespace {

// Shortest that reads back the same, with a mark that it is no integer.
std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (!std::isfinite(value)) return text;
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) {
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  // 1e-08 to 1e-8.
  while (text[exponent + 2] == '0') text.erase(exponent + 2, 1);
  return text;
}

// Escapes what TOML does not take as it is. The text is UTF-8.
std::string string_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\u{:04x}", byte);
    } else {
      text += c;
    }
  }
  return text + '"';
}

}  // namespace

bool Range::contains(double value) const {
  return (without_low ? value > low : value >= low) &&
         (without_high ? value < high : value <= high);
}

std::string Range::to_string() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (low == -kInfinity && high == kInfinity) return "";
  const std::string from =
      fmt::format("{} {:.15g}", without_low ? "above" : "at least", low);
  if (high == kInfinity) return from;
  return fmt::format("{} {:.15g} {} {:.15g}", without_low ? "above" : "from",
                     low, without_high ? "to below" : "to", high);
}

std::string Field::name() const { return fmt::format("{}.{}", section, key); }

Value Field::get(const Config& config) const {
  // The slot is only read.
  return std::visit([](auto* member) { return Value(*member); },
                    slot(const_cast<Config&>(config)));
}

void Field::set(Config& config, const Value& value) const {
  std::visit(
      [&](auto* member) {
        *member = std::get<std::remove_pointer_t<decltype(member)>>(value);
      },
      slot(config));
}

std::string_view type_name(const Value& value) {
  constexpr std::array<std::string_view, 4> kNames = {"a boolean", "an integer",
                                                      "a number", "a string"};
  return kNames[value.index()];
}

std::string value_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*integer);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return number_text(*number);
  }
  return string_text(std::get<std::string>(value));
}

std::string choices_text(const Field& field) {
  std::string text;
  for (const std::string_view choice : field.choices) {
    if (!text.empty()) text += ", ";
    text += choice;
  }
  return text;
}

}  // namespace polyattn::run
