#include "nn/other_ops.h"

#include "polyattn/nn/attention_base.h"
#include "polyattn/nn/mlp.h"

namespace polyattn::nn {

void replace_ops(torch::nn::Module& module, const OtherOps& ops) {
  if (auto* attention = module.as<AttentionBase>())
    attention->other_op_ = ops.attention;
  if (auto* mlp = module.as<MlpImpl>()) mlp->other_gelu_ = ops.gelu;
  for (const auto& child : module.children()) replace_ops(*child, ops);
}

}  // namespace polyattn::nn
