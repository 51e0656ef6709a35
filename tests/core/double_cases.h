// Calls of attention_double_backward for tests: an Instance with cotangents.
#pragma once

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/kernel_cases.h"
#include "core/random_inputs.h"
#include "polyattn/double_backward.h"
#include "polyattn/reference.h"

namespace polyattn::test {

// What attention_double_backward writes, NaN at first.
struct DoubleOutputs {
  Buffer d_o, dq, dk, dv, d_bias;

  AttentionDoubleGradients gradients() {
    AttentionDoubleGradients all{d_o.tensor, dq.tensor, dk.tensor, dv.tensor};
    if (d_bias.tensor.size != Extents{}) all.d_bias = d_bias.tensor;
    return all;
  }
};

class DoubleInstance {
 public:
  explicit DoubleInstance(const Case& c)
      : instance(c),
        cotangents_(with_seed(c)),
        forward_(instance.outputs(DType::kF64)) {
    for_each_index(cotangents_.bias.tensor.size, [&](const Extents& x) {
      if (!std::isfinite(at(cotangents_.bias.tensor, x)))
        cotangents_.bias.set(x, 0.5);
    });
  }

  // With rows as the reference gives them.
  AttentionDoubleInputs inputs() {
    if (!ran_) {
      reference_forward(instance.inputs(), instance.config(),
                        forward_.results());
      ran_ = true;
    }
    return inputs(forward_.rows);
  }

  AttentionDoubleInputs inputs(const std::vector<RowState>& rows) const {
    AttentionDoubleInputs in{.rows = rows,
                             .d_o = instance.d_o.tensor,
                             .uq = cotangents_.q.tensor,
                             .uk = cotangents_.k.tensor,
                             .uv = cotangents_.v.tensor};
    if (instance.inputs().bias) in.u_bias = cotangents_.bias.tensor;
    return in;
  }

  DoubleOutputs outputs(DType dtype) const {
    Outputs like = instance.outputs(dtype);
    return {std::move(like.o), std::move(like.dq), std::move(like.dk),
            std::move(like.dv), std::move(like.d_bias)};
  }

  // What is right, in f64.
  DoubleOutputs reference() {
    DoubleOutputs out = outputs(DType::kF64);
    reference_double_backward(instance.inputs(), instance.config(), inputs(),
                              out.gradients());
    return out;
  }

  Instance instance;

 private:
  static Case with_seed(Case c) {
    c.seed += 1000;
    c.magnitude = 1;
    return c;
  }

  Instance cotangents_;
  Outputs forward_;
  bool ran_ = false;
};

}  // namespace polyattn::test
