// Any text either is a problem or throws ConfigError, never anything else; and
// every expression of what is accepted has a value. The same text as one
// expression either parses or points at a column within it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "physics/evaluate.h"
#include "physics/problem.h"
#include "train/run/config.h"

namespace {

using polyattn::physics::Expression;

void require(bool condition, const char* message, std::string_view detail) {
  if (condition) return;
  std::fprintf(stderr, "%s\n%.*s\n", message, static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

void check_value(const Expression& expression) {
  polyattn::physics::evaluate<double>(
      expression, std::vector<double>(expression.symbols.size(), 0.5));
}

void check_problem(std::string_view text) {
  try {
    const auto problem = polyattn::physics::parse_problem(text, "fuzz");
    check_value(problem.equation);
    check_value(problem.exact);
    for (const auto& condition : problem.conditions) {
      if (condition.equation) check_value(*condition.equation);
      require(condition.coordinate < problem.domain.size(),
              "a condition of no coordinate", condition.term);
    }
    for (const auto& interval : problem.domain)
      require(interval.low < interval.high, "a domain of no size", text);
  } catch (const polyattn::run::ConfigError& error) {
    const std::string_view what = error.what();
    require(what.starts_with("[problem] "), "message without its mark", what);
    require(what.size() < 30000, "a message of any length", what);
  }
}

void check_expression(std::string_view text) {
  const polyattn::physics::Names names{
      .coordinates = {"x", "t"}, .unknown = "u", .parameters = {{"beta", 2.0}}};
  try {
    check_value(polyattn::physics::parse_equation(text, names));
  } catch (const polyattn::physics::ExpressionError& error) {
    const std::string_view what = error.what();
    require(error.column() <= text.size(), "column outside the text", what);
    require(std::count(what.begin(), what.end(), '\n') == 2, "not three lines",
            what);
    require(what.substr(what.rfind('\n') + 1) ==
                std::string(error.column(), ' ') + "^",
            "caret not under the column", what);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_problem(text);
  check_expression(text);
  return 0;
}
