#include "nn/choice.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace polyattn::nn {

void check_choice(const char* op, const char* option, const std::string& value,
                  std::initializer_list<const char*> choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  std::string list;
  for (const char* choice : choices) {
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  TORCH_CHECK(false, '[', op, "] ", option, " \"", value, "\" is none of ",
              list);
}

void check_rate(const char* op, const char* option, double rate) {
  TORCH_CHECK(rate >= 0 && rate < 1, '[', op, "] ", option, ' ', rate,
              " is not in [0, 1)");
}

}  // namespace polyattn::nn
