#include "polyattn/nn/nystrom_attention.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/nn/init.h>
#include <torch/utils.h>

#include <cmath>

#include "nn/attention_checks.h"
#include "nn/depthwise.h"
#include "nn/gains.h"
#include "nn/pseudo_inverse.h"
#include "nn/split_rows.h"
#include "torch/call.h"
#include "torch/composed.h"

namespace polyattn::nn {
namespace {

void check_nystrom_options(const NystromOptions& o) {
  const char* const op = "NystromAttention";
  TORCH_CHECK(o.landmarks() > 0, '[', op, "] landmarks ", o.landmarks(),
              " < 1");
  TORCH_CHECK(o.conv() == 0 || (o.conv() > 0 && o.conv() % 2 == 1), '[', op,
              "] conv ", o.conv(), " is neither 0 nor odd");
  check_choice(op, "inverse", o.inverse(), {"iterative", "exact"});
  check_choice(op, "scaling", o.scaling(), {"matrix", "batch"});
  TORCH_CHECK(o.iterations() > 0, '[', op, "] iterations ", o.iterations(),
              " < 1");
  TORCH_CHECK(o.rcond() >= 0 && o.rcond() < 1, '[', op, "] rcond ", o.rcond(),
              " is not in [0, 1)");
}

void check_mask(const torch::Tensor& mask, const torch::Tensor& x) {
  if (!mask.defined()) return;
  TORCH_CHECK(
      mask.scalar_type() == torch::kBool && mask.dim() == 4 &&
          (mask.size(0) == 1 || mask.size(0) == x.size(0)) &&
          mask.size(1) == 1 && mask.size(2) == 1 && mask.size(3) == x.size(1),
      "[NystromAttention] a mask of type ", mask.scalar_type(), " and size ",
      mask.sizes(), " is not bool [", x.size(0), " or 1, 1, 1, ", x.size(1),
      "], of keys: rows meet landmarks, not keys");
}

torch::Tensor means_of_segments(const torch::Tensor& rows,
                                std::int64_t segments) {
  return rows.unflatten(-2, {segments, rows.size(-2) / segments}).mean(-2);
}

// ||F Z B||_F^2 = <F^T F, Z B B^T Z^T>, [B, H]: without an N x N matrix.
torch::Tensor squared_norm(const torch::Tensor& f, const torch::Tensor& z,
                           const torch::Tensor& b) {
  const torch::Tensor zb = z.to(torch::kDouble).matmul(b.to(torch::kDouble));
  const torch::Tensor wide = f.to(torch::kDouble);
  return (wide.transpose(-2, -1).matmul(wide) * zb.matmul(zb.transpose(-2, -1)))
      .sum({-2, -1})
      .clamp_min(0);  // against rounding
}

torch::Tensor weights_of(const torch::Tensor& q, const torch::Tensor& k,
                         const polyattn::AttentionOptions& call) {
  return composed_weights(make_call(q, k, k.narrow(-1, 0, 1), call));
}

}  // namespace

// What a call has beside its rows. Z is in f32 at least: an inverse of what has
// three digits has none.
struct NystromAttentionImpl::Landmarks {
  torch::Tensor q, k, z;
  polyattn::AttentionOptions call;  // without the mask, which is of keys
};

// Hidden rows are zero, and others follow up to a multiple of the landmarks.
struct NystromAttentionImpl::Rows {
  Heads heads;
  torch::Tensor v;     // [B, N, C], without those that follow
  torch::Tensor keys;  // the mask; undefined if all are seen
};

NystromAttentionImpl::NystromAttentionImpl(
    const NystromAttentionOptions& options_)
    : options(options_) {
  check_joint_options("NystromAttention", options);
  check_nystrom_options(options.nystrom());
  NystromAttentionImpl::reset();
}

void NystromAttentionImpl::reset() {
  const std::int64_t dim = options.dim(), width = options.nystrom().conv();
  in_proj_weight =
      register_parameter("in_proj_weight", torch::empty({3 * dim, dim}));
  torch::nn::init::xavier_uniform_(in_proj_weight);
  in_proj_bias = register_parameter("in_proj_bias", torch::zeros({3 * dim}));
  out_proj = register_module("out_proj", torch::nn::Linear(dim, dim));
  torch::nn::init::zeros_(out_proj->bias);
  if (width == 0) return;
  conv_weight = register_parameter(
      "conv_weight", torch::empty({options.heads(), 1, width, 1}));
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  torch::nn::init::uniform_(conv_weight, -bound, bound);
}

bool NystromAttentionImpl::is_exact(const Heads& heads) const {
  return heads.k.size(-2) <= options.nystrom().landmarks();
}

NystromAttentionImpl::Landmarks NystromAttentionImpl::landmarks_of(
    const Heads& heads, const polyattn::AttentionOptions& call) const {
  const c10::impl::ExcludeDispatchKeyGuard wide(c10::DispatchKey::AutocastCPU);
  const std::int64_t m = options.nystrom().landmarks();
  const auto type = c10::promoteTypes(torch::kFloat, heads.q.scalar_type());
  Landmarks landmarks{means_of_segments(heads.q.to(type), m),
                      means_of_segments(heads.k.to(type), m),
                      {},
                      polyattn::AttentionOptions(call).mask(c10::nullopt)};
  const torch::Tensor& q = landmarks.q;
  const auto one = torch::eye(m, q.options());
  const torch::Tensor a = AttentionBase::compute(
      {q, landmarks.k, one.expand({q.size(0), q.size(1), m, m})},
      polyattn::AttentionOptions(landmarks.call).dropout(0));
  landmarks.z = pseudo_inverse(a, options.nystrom());
  landmarks.q = q.to(heads.q.scalar_type());
  landmarks.k = landmarks.k.to(heads.q.scalar_type());
  return landmarks;
}

torch::Tensor NystromAttentionImpl::compute(
    const Heads& heads, const polyattn::AttentionOptions& call) const {
  if (is_exact(heads)) return AttentionBase::compute(heads, call);
  const Landmarks landmarks = landmarks_of(heads, call);
  torch::Tensor seen =
      AttentionBase::compute({landmarks.q, heads.k, heads.v}, call);
  {
    const c10::impl::ExcludeDispatchKeyGuard wide(
        c10::DispatchKey::AutocastCPU);
    seen = landmarks.z.matmul(seen.to(landmarks.z.scalar_type()))
               .to(heads.q.scalar_type());
  }
  return AttentionBase::compute({heads.q, landmarks.k, seen}, landmarks.call);
}

AttentionWithNorms NystromAttentionImpl::compute_with_norms(
    const Heads& heads, const polyattn::AttentionOptions& call) const {
  if (is_exact(heads)) return AttentionBase::compute_with_norms(heads, call);
  AttentionWithNorms result{compute(heads, call), {}};
  const torch::NoGradGuard no_grad;
  const Landmarks marks = landmarks_of(heads, call);
  const auto keys = polyattn::AttentionOptions(call).dropout(0);
  const auto plain = polyattn::AttentionOptions(marks.call).dropout(0);
  const auto norms_of = [](const torch::Tensor& q, const torch::Tensor& k,
                           const polyattn::AttentionOptions& own) {
    return polyattn::attention_with_norms(q, k, k.narrow(-1, 0, 1), own).norms;
  };
  const AttentionNorms f = norms_of(heads.q, marks.k, plain),
                       a = norms_of(marks.q, marks.k, plain),
                       b = norms_of(marks.q, heads.k, keys);
  result.norms = {
      squared_norm(weights_of(heads.q, marks.k, plain), marks.z,
                   weights_of(marks.q, heads.k, keys))
          .sqrt(),
      (f.jacobian.square() + a.jacobian.square() + b.jacobian.square()).sqrt(),
      torch::maximum(torch::maximum(f.max_abs_score, a.max_abs_score),
                     b.max_abs_score),
      result.output.isfinite().logical_not().sum({-2, -1})};
  return result;
}

// [B, N, C] -> [B, N, C]: the heads' taps for each of their channels.
torch::Tensor NystromAttentionImpl::convolved(const torch::Tensor& v) const {
  const std::int64_t width = options.nystrom().conv();
  const auto type = c10::promoteTypes(
      torch::kFloat,
      c10::promoteTypes(v.scalar_type(), conv_weight.scalar_type()));
  const torch::Tensor taps = conv_weight.view({options.heads(), width})
                                 .t()
                                 .repeat_interleave(head_dim(), 1)
                                 .to(type);
  return depthwise(v.to(type).unsqueeze(2), taps, {width, 1, width / 2, 0})
      .squeeze(2)
      .to(v.scalar_type());
}

NystromAttentionImpl::Rows NystromAttentionImpl::project(
    const torch::Tensor& x, const torch::Tensor& mask) const {
  const std::int64_t c = options.dim(), n = x.size(1);
  const std::int64_t m = options.nystrom().landmarks();
  const std::int64_t more = n <= m ? 0 : (m - n % m) % m;
  auto parts =
      split_rows(torch::linear(x, in_proj_weight, in_proj_bias), {c, c, c});
  torch::Tensor keys = mask;
  if (mask.defined()) {
    const torch::Tensor hidden = mask.view({mask.size(0), n, 1}).logical_not();
    for (torch::Tensor& part : parts) part = part.masked_fill(hidden, 0);
  } else if (more > 0) {
    keys = torch::ones({1, 1, 1, n}, x.options().dtype(torch::kBool));
  }
  if (more > 0) keys = torch::constant_pad_nd(keys, {0, more}, false);
  const auto by_head = [&](const torch::Tensor& part) {
    const torch::Tensor full =
        more > 0 ? torch::constant_pad_nd(part, {0, 0, 0, more}) : part;
    return full.unflatten(-1, {options.heads(), head_dim()}).transpose(1, 2);
  };
  return {{by_head(parts[0]), by_head(parts[1]), by_head(parts[2])},
          parts[2],
          keys};
}

torch::Tensor NystromAttentionImpl::forward(const torch::Tensor& x,
                                            const torch::Tensor& mask) {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.dim(),
              "[NystromAttention] x of size ", x.sizes(), " is not [B, N, ",
              options.dim(), "]");
  check_mask(mask, x);
  Rows rows = project(x, mask);
  auto call = polyattn::AttentionOptions()
                  .activation(options.activation())
                  .dropout(is_training() ? options.dropout() : 0)
                  .scale(1 / std::sqrt(static_cast<double>(head_dim())));
  if (rows.keys.defined()) call.mask(rows.keys);
  const std::int64_t n = x.size(1);
  torch::Tensor o = watched_attention(rows.heads, call)
                        .narrow(2, 0, n)
                        .transpose(1, 2)
                        .flatten(2);
  if (weights_.defined()) weights_ = weights_.narrow(-2, 0, n).narrow(-1, 0, n);
  if (conv_weight.defined()) o = o + convolved(rows.v);
  return torch::dropout(out_proj->forward(o), options.projection_dropout(),
                        is_training());
}

std::vector<double> NystromAttentionImpl::apply_gains(
    std::vector<double> gains) {
  const std::vector<double> half = shared_part(gains, gains.size());
  for (const torch::Tensor& rows : {in_proj_weight, in_proj_bias}) {
    scale_heads(rows, 0, head_dim(), half);
    scale_heads(rows, options.dim(), head_dim(), half);
  }
  return gains;
}

}  // namespace polyattn::nn
