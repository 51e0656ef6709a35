#include "core/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/visibility.h"

namespace polyattn {

bool needs_copy(const ConstTensor& t, DType compute) {
  return t.dtype != compute || t.stride[2] > t.size[3] + 16;
}

namespace {

std::int64_t round_down(std::int64_t x, std::int64_t step) {
  return std::max(x / step, std::int64_t{1}) * step;
}

// Keys in a block, so that the weights of a strip fill half of a first-level
// cache of 32 KB; a multiple of every tile height.
std::int64_t forward_k_block(std::int64_t strip, std::int64_t element) {
  constexpr std::int64_t kPanelBytes = 16384;
  return round_down(kPanelBytes / (strip * element), 12);
}

BiasPlan plan_bias(const Problem& p, std::int64_t strip) {
  constexpr std::int64_t kWantedTasks = 64;
  constexpr std::int64_t kPartBytes = 32 << 20;
  BiasPlan plan{.families = p.batch * p.kv_heads, .sequences = p.batch};
  if (!p.d_bias) return plan;
  const Extents& size = p.in.bias->size;
  plan.sequences = size[0];
  plan.by_head = size[1] > 1 || p.kv_heads == 1;
  plan.slices = size[0] * size[1];
  plan.keys = size[3];
  // A bias that is one number has a sum for each query, since queries are what
  // tiles that run at once do not share.
  plan.strips = size[2] == 1 && size[3] > 1 ? 1 : ceil_div(p.n, strip);
  plan.members = p.batch / std::max<std::int64_t>(plan.sequences, 1) *
                 (plan.by_head ? 1 : p.kv_heads);
  plan.families /= std::max<std::int64_t>(plan.members, 1);
  const std::int64_t bytes = plan.slices * plan.slice_size(strip) *
                             static_cast<std::int64_t>(size_of(p.compute));
  const std::int64_t wanted =
      ceil_div(kWantedTasks, std::max<std::int64_t>(plan.families, 1));
  const std::int64_t room = kPartBytes / std::max<std::int64_t>(bytes, 1);
  plan.parts = std::clamp<std::int64_t>(
      std::min(wanted, room), 1, std::max<std::int64_t>(plan.members, 1));
  return plan;
}

}  // namespace

// A panel is worth its memory if it is read a few times and stays in a
// second-level cache.
SharedPanels plan_shared_panels(const Problem& p, std::int64_t strip) {
  constexpr std::int64_t kLeastUses = 4;
  constexpr std::int64_t kPanelsBytes = 1 << 20;
  const auto& bias = p.in.bias;
  const auto& mask = p.in.mask;
  if (p.ragged() || (!bias && !mask)) return {};
  // Such rows are made quickly, and of those of a window most are never read.
  if (rows_share_keys(p) || p.windowed()) return {};
  const auto size = [&](std::size_t i) {
    return std::pair(bias ? bias->size[i] : 1, mask ? mask->size[i] : 1);
  };
  SharedPanels plan{.strips = ceil_div(p.n, strip), .keys = p.m};
  plan.sequences = std::lcm(size(0).first, size(0).second);
  plan.heads = std::max(size(1).first, size(1).second);
  const std::int64_t bytes = plan.count() * plan.keys * strip *
                             static_cast<std::int64_t>(size_of(p.compute));
  const std::int64_t uses =
      p.batch * p.heads /
      std::max<std::int64_t>(plan.sequences * plan.heads, 1);
  return uses >= kLeastUses && bytes <= kPanelsBytes ? plan : SharedPanels{};
}

ForwardPlan plan_forward(const Problem& p, int strip) {
  // Queries and output of a block share the second-level cache with a block of
  // k and v, which it then reads once.
  constexpr std::int64_t kBlockBytes = 96 * 1024;
  constexpr std::int64_t kMostStrips = 12;
  constexpr std::int64_t kLeastStrips = 2;
  constexpr std::int64_t kWantedTasks = 16;
  constexpr std::int64_t kMostTasks = 32;
  const auto element = static_cast<std::int64_t>(size_of(p.compute));
  ForwardPlan plan{};
  plan.strip = strip;
  plan.copy_k = needs_copy(p.in.k, p.compute);
  plan.copy_v = needs_copy(p.in.v, p.compute);
  plan.panels = plan_shared_panels(p, strip);
  plan.k_block =
      std::min(forward_k_block(strip, element), std::max<std::int64_t>(p.m, 1));
  const std::int64_t strip_bytes = strip * (p.d + p.e) * element;
  const std::int64_t most = std::clamp<std::int64_t>(
      kBlockBytes / std::max<std::int64_t>(strip_bytes, 1), 1, kMostStrips);
  const std::int64_t strips = std::max<std::int64_t>(ceil_div(p.n, strip), 1);
  const std::int64_t heads = std::max<std::int64_t>(p.batch * p.heads, 1);
  const std::int64_t wanted =
      std::min(ceil_div(kWantedTasks, heads), ceil_div(strips, kLeastStrips));
  const std::int64_t blocks = std::max(ceil_div(strips, most), wanted);
  plan.block_strips = ceil_div(strips, blocks);
  plan.blocks = ceil_div(strips, plan.block_strips);
  plan.units = std::max<std::int64_t>(heads * plan.blocks / kMostTasks, 1);
  return plan;
}

AttentionStats add_stats(std::span<const AttentionStats> parts) {
  AttentionStats total;
  for (const AttentionStats& part : parts) {
    total.weight_sq += part.weight_sq;
    total.jacobian_sq += part.jacobian_sq;
    total.max_abs_score = std::max(total.max_abs_score, part.max_abs_score);
    total.non_finite += part.non_finite;
  }
  return total;
}

BackwardPlan plan_backward(const Problem& p, int strip) {
  constexpr std::int64_t kWantedTiles = 16;
  constexpr std::int64_t kSlotBytes = 32 << 20;
  constexpr std::int64_t kMostTasks = 64;
  const auto element = static_cast<std::int64_t>(size_of(p.compute));
  const std::int64_t group = p.kv_heads > 0 ? p.heads / p.kv_heads : 0;
  const std::int64_t rows = group * p.n;
  BackwardPlan plan{};
  plan.strip = strip;
  // dq is a product with k in whole vectors.
  plan.copy_k = needs_copy(p.in.k, p.compute) || p.d % plan.lanes() != 0;
  plan.copy_v = needs_copy(p.in.v, p.compute);
  plan.panels = plan_shared_panels(p, strip);
  plan.k_block = std::min<std::int64_t>(120, std::max<std::int64_t>(p.m, 1));
  const std::int64_t shorter = std::min(p.n, p.m);
  const std::int64_t least = shorter < 1024 ? 128 : shorter < 4096 ? 256 : 512;
  const std::int64_t pairs = std::max<std::int64_t>(p.batch * p.kv_heads, 1);
  plan.bias = plan_bias(p, strip);
  // Pairs that may run at once: those that do not add to the same sums.
  const std::int64_t apart =
      std::max<std::int64_t>(plan.bias.families * plan.bias.parts, 1);
  plan.chunks = std::clamp<std::int64_t>(shorter / least, 1,
                                         ceil_div(kWantedTiles, apart));
  plan.q_chunk = ceil_div(ceil_div(p.n, plan.chunks), strip) * strip;
  plan.k_chunk = ceil_div(p.m, plan.chunks);
  plan.diagonal = p.windowed();
  // A last block of one strip would read and write all of dk and dv for it.
  plan.q_step = round_down(64, strip);
  const std::int64_t queries = std::min(plan.q_chunk, p.n);
  const std::int64_t last = queries % plan.q_step;
  const bool joins = queries > plan.q_step && last > 0 && last <= strip;
  plan.q_block = plan.q_step + (joins ? strip : 0);
  plan.lines = std::max<std::int64_t>(plan.all_lines() / kMostTasks, 1);
  const std::int64_t slot = element * (rows * p.d + p.m * (p.d + p.e));
  plan.pairs_at_once = std::clamp<std::int64_t>(
      kSlotBytes / std::max<std::int64_t>(slot, 1), 1, pairs);
  if (plan.bias.members > plan.bias.parts) {
    const std::int64_t step =
        plan.bias.by_head ? plan.bias.sequences * p.kv_heads : 1;
    plan.pairs_at_once = std::min(plan.pairs_at_once, plan.bias.parts * step);
  }
  return plan;
}

}  // namespace polyattn
