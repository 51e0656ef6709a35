#include <cmath>
#include <cstdio>
#include <vector>

#include "polyattn/attention.h"

namespace pa = polyattn;

int main() {
  const pa::Extents shape{1, 2, 16, 4};  // batch, heads, tokens, width
  std::vector<float> q(128, 1.0f), k(128, 0.5f), v(128, 3.0f), o(128);
  pa::attention_forward({.q = pa::view(q.data(), shape),
                         .k = pa::view(k.data(), shape),
                         .v = pa::view(v.data(), shape)},
                        {.activation = pa::Activation::parse("x^3/sqrt(N)")},
                        {.o = pa::view(o.data(), shape)});
  std::printf("%g\n", o[0]);  // 12: sixteen keys, weight 1/4 each, value 3
  return std::abs(o[0] - 12) < 1e-4 ? 0 : 1;
}
