// Any bytes either parse or throw FormulaError, never anything else; and what
// parses is printed as text that parses to the same activation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "polyattn/activation.h"

namespace {

using polyattn::Activation;

void require(bool condition, const char* message, std::string_view text) {
  if (condition) return;
  std::fprintf(stderr, "%s: %.*s\n", message, static_cast<int>(text.size()),
               text.data());
  std::abort();
}

void check_round_trip(const Activation& activation) {
  const std::string text = activation.to_string();
  try {
    const Activation again = Activation::parse(text);
    require(again == activation, "parse(to_string()) differs", text);
    require(again.to_string() == text, "to_string() is not stable", text);
  } catch (const polyattn::FormulaError& error) {
    require(false, "to_string() does not parse", error.what());
  }
}

void check_error(const polyattn::FormulaError& error,
                 std::string_view formula) {
  const std::string_view what = error.what();
  require(error.column() <= formula.size(), "column outside the formula", what);
  require(std::count(what.begin(), what.end(), '\n') == 2, "not three lines",
          what);
  require(what.substr(what.rfind('\n') + 1) ==
              std::string(error.column(), ' ') + "^",
          "caret not under the column", what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view formula(reinterpret_cast<const char*>(data), size);
  Activation activation;
  try {
    activation = Activation::parse(formula);
  } catch (const polyattn::FormulaError& error) {
    check_error(error, formula);
    return 0;
  }
  check_round_trip(activation);
  return 0;
}
