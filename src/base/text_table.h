// Columns of text that line up, whatever alphabet they are written in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::base {

// Code points of UTF-8 text, not counting terminal colours: the columns it
// takes, as long as it has no wide or combining characters.
std::size_t display_width(std::string_view text);

// At most `columns` wide, cut between characters.
std::string shortened(std::string_view text, int columns);

enum class Align { kLeft, kRight };
enum class Colour { kNone, kGreen, kRed };

// Wraps text in a terminal colour.
std::string coloured(std::string_view text, Colour colour);

struct Column {
  std::string title;
  Align align = Align::kRight;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // Throws std::invalid_argument if the number of cells is not that of columns.
  void add_row(std::vector<std::string> cells);

  // Header, rule and rows, without the columns in which every cell is empty
  // and without blanks at the end of a line.
  std::string to_string() const;

 private:
  // 0 for a column that is left out.
  std::size_t width_of(std::size_t column) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace polyattn::base
