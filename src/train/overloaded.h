// One function object of several lambdas, for std::visit.
#pragma once

namespace polyattn::train {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace polyattn::train
