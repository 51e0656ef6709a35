#include "base/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace polyattn::base {
namespace {

constexpr std::string_view kGap = "  ";

// Bytes of the character or colour code that begins at `at`.
std::size_t unit_length(std::string_view text, std::size_t at) {
  if (text[at] == '\033') {
    const std::size_t end = text.find('m', at);
    return (end == std::string_view::npos ? text.size() : end + 1) - at;
  }
  std::size_t length = 1;
  while (at + length < text.size() &&
         (static_cast<unsigned char>(text[at + length]) & 0xC0U) == 0x80U) {
    ++length;
  }
  return length;
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t own = display_width(text);
  const std::string blanks(width > own ? width - own : 0, ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); at += unit_length(text, at)) {
    if (text[at] != '\033') ++width;
  }
  return width;
}

std::string shortened(std::string_view text, int columns) {
  std::size_t at = 0;
  for (int used = 0; at < text.size(); at += unit_length(text, at)) {
    if (text[at] != '\033' && used++ >= columns) break;
  }
  return std::string(text.substr(0, at));
}

std::string coloured(std::string_view text, Colour colour) {
  if (colour == Colour::kNone) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", colour == Colour::kGreen ? 32 : 31,
                     text);
}

TextTable::TextTable(std::vector<Column> columns)
    : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(fmt::format("[TextTable] {} cells, {} columns",
                                            cells.size(), columns_.size()));
  }
  rows_.push_back(std::move(cells));
}

std::size_t TextTable::width_of(std::size_t column) const {
  std::size_t width = 0;
  for (const auto& row : rows_) {
    width = std::max(width, display_width(row[column]));
  }
  if (width == 0 && !rows_.empty()) return 0;
  return std::max(width, display_width(columns_[column].title));
}

std::string TextTable::to_string() const {
  std::vector<std::string> titles, rules;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(i));
    titles.push_back(columns_[i].title);
    rules.emplace_back(widths[i], '-');
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0) continue;
      if (!line.empty()) line += kGap;
      line += padded(cells[i], widths[i], columns_[i].align);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line(titles);
  add_line(rules);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace polyattn::base
