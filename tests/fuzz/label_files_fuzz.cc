// Any bytes are a list of labels or a DataError, never anything else. The first
// byte of the input, modulo 5, says which list is tried.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "data/label_files.h"
#include "data/sets.h"

namespace {

using namespace polyattn::data;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void check_name(const std::string& name) {
  require(!name.empty() && name.size() <= 255, "a name of no length");
  require(name.find('/') == std::string::npos && name[0] != '.',
          "a name that leads elsewhere");
}

void check(const std::vector<LabelledName>& lines) {
  require(!lines.empty(), "nothing");
  for (const LabelledName& line : lines) {
    check_name(line.image);
    check_name(line.class_name);
  }
}

void parse(int kind, std::string_view text) {
  constexpr std::size_t kClasses = 7;
  switch (kind) {
    case 0:
    case 1: {
      const Names names = kind == 0 ? Names::kEachOnce : Names::kOneAnImage;
      for (const std::string& name : parse_names(text, names, "input")) {
        check_name(name);
      }
      return;
    }
    case 2:
      return check(parse_val_annotations(text, "input"));
    case 3:
      return check(parse_val_solution(text, "input"));
    default:
      for (const std::int32_t label :
           parse_ground_truth(text, kClasses, "input")) {
        require(label >= 0 && label < static_cast<std::int32_t>(kClasses),
                "a label out of range");
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  try {
    parse(data[0] % 5, {reinterpret_cast<const char*>(data + 1), size - 1});
  } catch (const DataError& error) {
    require(std::string_view(error.what()).starts_with("input"), error.what());
  }
  return 0;
}
