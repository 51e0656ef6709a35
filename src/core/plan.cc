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

// Workers that a call is cut for, where it is long enough.
constexpr std::int64_t kWorkers = 64;
// Tasks that are not worth being told apart, of many short heads.
constexpr std::int64_t kMostTasks = 16 * kWorkers;

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
  constexpr std::int64_t kBlockBytes = 112 * 1024;
  constexpr std::int64_t kMostStrips = 14;
  // Eight units a worker leave few of them waiting at the end. Blocks of 128
  // queries read keys and values often enough; a few workers are worth more.
  constexpr std::int64_t kWantedUnits = 8 * kWorkers;
  constexpr std::int64_t kLeastRows = 128;
  constexpr std::int64_t kFewUnits = 16;
  constexpr std::int64_t kLeastStrips = 2;
  constexpr std::int64_t kLeastProducts = 1 << 18;  // of a task
  constexpr std::int64_t kLeastTasks = 32;
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
  const std::int64_t few =
      std::min(ceil_div(kFewUnits, heads), ceil_div(strips, kLeastStrips));
  const std::int64_t many =
      std::min(ceil_div(kWantedUnits, heads), p.n / kLeastRows);
  const std::int64_t blocks = std::max({ceil_div(strips, most), few, many});
  plan.block_strips = ceil_div(strips, blocks);
  plan.blocks = ceil_div(strips, plan.block_strips);
  const std::int64_t all = heads * plan.blocks;
  const std::int64_t products =
      std::max<std::int64_t>(ceil_div(p.n, plan.blocks) * p.m * (p.d + p.e), 1);
  plan.units = std::max<std::int64_t>(
      {all / kMostTasks, std::min(kLeastProducts / products, all / kLeastTasks),
       1});
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

namespace {

// The pairs whose sums have room at once, in groups of nearly the same size.
std::int64_t pairs_at_once(const Problem& p, const BiasPlan& bias) {
  constexpr std::int64_t kSlotBytes = 32 << 20;
  const auto element = static_cast<std::int64_t>(size_of(p.compute));
  const std::int64_t pairs = std::max<std::int64_t>(p.batch * p.kv_heads, 1);
  const std::int64_t rows = p.kv_heads > 0 ? p.heads / p.kv_heads * p.n : 0;
  const std::int64_t slot = element * (rows * p.d + p.m * (p.d + p.e));
  std::int64_t most = std::clamp<std::int64_t>(
      kSlotBytes / std::max<std::int64_t>(slot, 1), 1, pairs);
  if (bias.members > bias.parts) {
    const std::int64_t step = bias.by_head ? bias.sequences * p.kv_heads : 1;
    most = std::min(most, bias.parts * step);
  }
  return ceil_div(pairs, ceil_div(pairs, most));
}

// Queries of a chunk, of so many along a side of the grid.
std::int64_t q_chunk_of(const Problem& p, std::int64_t strip,
                        std::int64_t chunks) {
  return std::max<std::int64_t>(ceil_div(ceil_div(p.n, chunks), strip), 1) *
         strip;
}

// Less time than this part of it is worth more rounds.
constexpr double kGain = 0.97;

// What kWorkers take for the rounds of a grid, in scores of a head.
double rounds_time(const Problem& p, const BackwardPlan& plan,
                   std::int64_t chunks) {
  // The end of a round, in which some wait for the others: 10 microseconds, of
  // which a core multiplies and adds 10^11 a second.
  const double barrier = 1e6 / static_cast<double>(3 * p.d + 2 * p.e);
  const std::int64_t groups = ceil_div(plan.pairs(p), plan.pairs_at_once);
  const std::int64_t tiles =
      p.causal == Causal::kNone ? chunks : chunks / 2 + 1;
  const std::int64_t tile = p.heads / p.kv_heads *
                            q_chunk_of(p, plan.strip, chunks) *
                            ceil_div(p.m, chunks);
  const std::int64_t steps =
      chunks * ceil_div(plan.pairs_at_once * tiles, kWorkers);
  return static_cast<double>(groups) *
         (static_cast<double>(steps * tile) +
          static_cast<double>(chunks + 2) * barrier);
}

// Chunks along a side of the grid. One, where as many pairs as there are keep
// the workers busy, each with one of its own.
std::int64_t plan_chunks(const Problem& p, const BackwardPlan& plan) {
  constexpr std::int64_t kFewTiles = 16;
  constexpr std::int64_t kMostChunks = 2 * kWorkers;
  if (plan.pairs(p) == 0) return 1;
  const std::int64_t shorter = std::min(p.n, p.m);
  const std::int64_t apart = std::max<std::int64_t>(plan.all_lines(), 1);
  const std::int64_t members = ceil_div(plan.pairs(p), apart);
  const std::int64_t rows = p.heads / p.kv_heads * p.n;
  const auto time = [&](std::int64_t chunks) {
    if (chunks > 1) return rounds_time(p, plan, chunks);
    const double pair = static_cast<double>(rows) * static_cast<double>(p.m) *
                        (p.causal == Causal::kNone ? 1 : 0.5);
    return static_cast<double>(ceil_div(apart, kWorkers) * members) * pair;
  };
  // A few workers pay for tiles that are narrower than 512: so many of these
  // are made for a few alone.
  const std::int64_t least = shorter < 1024 ? 128 : shorter < 4096 ? 256 : 512;
  const std::int64_t few =
      std::clamp<std::int64_t>(shorter / least, 1, ceil_div(kFewTiles, apart));
  const std::int64_t most =
      std::clamp<std::int64_t>(shorter / 512, few, std::max(few, kMostChunks));
  std::int64_t chunks = few;
  for (std::int64_t c = few + 1; c <= most; ++c)
    if (time(c) < kGain * time(chunks)) chunks = c;
  return chunks;
}

}  // namespace

BackwardPlan plan_backward(const Problem& p, int strip) {
  BackwardPlan plan{};
  plan.strip = strip;
  // dq is a product with k in whole vectors.
  plan.copy_k = needs_copy(p.in.k, p.compute) || p.d % plan.lanes() != 0;
  plan.copy_v = needs_copy(p.in.v, p.compute);
  plan.panels = plan_shared_panels(p, strip);
  plan.k_block = std::min<std::int64_t>(120, std::max<std::int64_t>(p.m, 1));
  plan.bias = plan_bias(p, strip);
  plan.pairs_at_once = pairs_at_once(p, plan.bias);
  plan.chunks = plan_chunks(p, plan);
  plan.q_chunk = q_chunk_of(p, strip, plan.chunks);
  plan.k_chunk = ceil_div(p.m, plan.chunks);
  plan.diagonal = p.windowed();
  // A last block of one strip would read and write all of dk and dv for it.
  plan.q_step = round_down(64, strip);
  const std::int64_t queries = std::min(plan.q_chunk, p.n);
  const std::int64_t last = queries % plan.q_step;
  const bool joins = queries > plan.q_step && last > 0 && last <= strip;
  plan.q_block = plan.q_step + (joins ? strip : 0);
  plan.lines = std::max<std::int64_t>(plan.all_lines() / kMostTasks, 1);
  return plan;
}

}  // namespace polyattn
