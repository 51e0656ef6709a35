// What holds for the options of nn::Attention, and for formulas of others.
#pragma once

#include "polyattn/nn/attention.h"

namespace polyattn::nn {

// Throws c10::Error with a message that begins with [Attention].
void check_attention_options(const AttentionOptions& options);

// Throws c10::Error: [op] bad activation.
Activation check_formula(const char* op, const std::string& formula);

}  // namespace polyattn::nn
