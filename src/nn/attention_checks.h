// What holds for the options of nn::Attention, and for formulas of others.
#pragma once

#include "nn/choice.h"
#include "polyattn/nn/attention.h"
#include "polyattn/nn/nystrom_attention.h"

namespace polyattn::nn {

// Throws c10::Error with a message that begins with [Attention].
void check_attention_options(const AttentionOptions& options);

// The same attention by way of landmarks. Throws c10::Error if it has a part
// that is of all pairs alone: no choice is ignored in silence.
NystromAttentionOptions nystrom_options_of(const AttentionOptions& options,
                                           const NystromOptions& nystrom);

// Throws c10::Error: [op] bad activation.
Activation check_formula(const char* op, const std::string& formula);

// For an attention of which q, k and v are as wide as its rows.
template <typename Options>
void check_joint_options(const char* op, const Options& o) {
  TORCH_CHECK(o.heads() > 0, '[', op, "] heads ", o.heads(), " < 1");
  TORCH_CHECK(o.dim() > 0 && o.dim() % o.heads() == 0, '[', op, "] dim ",
              o.dim(), " is no positive multiple of heads ", o.heads());
  check_formula(op, o.activation());
  check_rate(op, "dropout", o.dropout());
  check_rate(op, "projection_dropout", o.projection_dropout());
}

}  // namespace polyattn::nn
