// The matched start for Python.
#include "theory/matched.h"

#include <torch/library.h>

#include <tuple>

#include "torch/call.h"
#include "torch/core_errors.h"

namespace polyattn {
namespace {

std::tuple<double, double, c10::optional<double>, double,
           c10::optional<std::string>>
matched_gain(c10::string_view activation, std::int64_t tokens, bool causal,
             double score_std, double factor) {
  const Activation parsed = parse_activation(activation);
  theory::Match match;
  with_torch_errors([&] {
    match = theory::matched_gain(parsed, {.tokens = tokens,
                                          .causal = causal,
                                          .score_std = score_std,
                                          .factor = factor});
  });
  c10::optional<double> norm;
  if (match.norm) norm = *match.norm;
  c10::optional<std::string> reason;
  if (!match.reason.empty()) reason = match.reason;
  return {match.gain, match.scale, norm, match.softmax_norm, reason};
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, CompositeImplicitAutograd, m) {
  m.impl("matched_gain", polyattn::matched_gain);
}
