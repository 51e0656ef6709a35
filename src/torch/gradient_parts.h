// A gradient that the parts of a call write, or add to.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "torch/parts.h"

namespace polyattn {

// The gradient of a key head is the sum over its group of query heads. Where
// each query head is a part of its own, the parts are added up.
class Gradient {
 public:
  // Undefined: not wanted. Without query heads no part writes to it.
  Gradient(at::Tensor total, bool no_heads) : total_(std::move(total)) {
    if (total_.defined() && no_heads) total_.zero_();
  }

  std::optional<Tensor> view_for(const Part& part, std::int64_t group) {
    if (!total_.defined()) return {};
    const at::Tensor own = heads_of(total_, part.first, part.count, group);
    const bool first = part.count > 1 || part.first % group == 0;
    piece_ = first ? own : at::empty_like(own);
    sum_ = first ? at::Tensor() : own;
    return view_of(piece_);
  }

  // Of log_decay, whose key heads serve a group, or which all share.
  std::optional<Tensor> view_for_decay(const Part& part) {
    const bool shared = total_.defined() && total_.size(1) == 1;
    return shared ? view_for_bias(part) : view_for(part, part.group);
  }

  // Of a bias, which all heads may share.
  std::optional<Tensor> view_for_bias(const Part& part) {
    if (!total_.defined()) return {};
    const bool shared = total_.size(1) == 1;
    const bool first = !shared || part.first == 0;
    const at::Tensor own =
        shared ? total_ : total_.narrow(1, part.first, part.count);
    piece_ = first ? own : at::empty_like(own);
    sum_ = first ? at::Tensor() : own;
    return view_of(piece_);
  }

  void finish_part() {
    if (sum_.defined()) sum_ += piece_;
    sum_ = at::Tensor();
  }

  const at::Tensor& total() const { return total_; }

 private:
  at::Tensor total_, piece_, sum_;
};

}  // namespace polyattn
