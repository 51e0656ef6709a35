// What holds for the options of nn::Attention.
#pragma once

#include "polyattn/nn/attention.h"

namespace polyattn::nn {

// Throws c10::Error with a message that begins with [Attention].
void check_attention_options(const AttentionOptions& options);

}  // namespace polyattn::nn
