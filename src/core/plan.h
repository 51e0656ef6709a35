// How a call is cut into tasks and what memory each needs. Everything follows
// from the shape and the target's strip width, nothing from the number of
// workers, so results do not depend on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "core/problem.h"

namespace polyattn {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Elements from row to row of a copy: an odd number of cache lines, so that a
// column spreads over all sets of the first-level cache.
template <typename T>
constexpr std::int64_t spread_width(std::int64_t width) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  return ((width + kLine - 1) / kLine | 1) * kLine;
}

// Rows that lie apart, or in another type, are brought together first: they
// would cost more cache and page entries than the copy costs time.
bool needs_copy(const ConstTensor& t, DType compute);

// Bias and mask as panels [M, W] for strips of W queries, made once for a call
// in which many examples or heads share them, as windows of images do. Without
// them each strip makes its own.
struct SharedPanels {
  std::int64_t sequences = 0, heads = 0;  // with panels of their own; 0: none
  std::int64_t strips = 0;
  std::int64_t keys = 0;  // M

  std::int64_t count() const { return sequences * heads * strips; }
  std::int64_t of(std::int64_t b, std::int64_t h, std::int64_t strip) const {
    return (b % sequences * heads + (heads == 1 ? 0 : h)) * strips + strip;
  }
};

SharedPanels plan_shared_panels(const Problem& problem, std::int64_t strip);

// W = strip.
template <typename T>
struct PanelStorage {
  PanelStorage(Arena& arena, const SharedPanels& shared, std::int64_t strip)
      : plan(shared),
        size(plan.keys * strip),
        data(arena.take<T>(plan.count() * size)) {}

  // The panel of a strip, if there is one.
  const T* find(std::int64_t b, std::int64_t h, std::int64_t strip) const {
    return plan.sequences == 0 ? nullptr : data + plan.of(b, h, strip) * size;
  }

  SharedPanels plan;
  std::int64_t size;
  T* data;  // [count, M, W]
};

// Forward: the unit of work is a block of queries of one head, which walks over
// all keys a block at a time. A task is a few units, so that it knows what
// comes next.
struct ForwardPlan {
  std::int64_t strip;         // queries in a full strip
  std::int64_t block_strips;  // strips in a block of queries
  std::int64_t blocks;        // blocks of the longest sequence of a head
  std::int64_t units;         // units in a task
  std::int64_t k_block;       // keys in a block
  bool copy_k, copy_v;        // bring rows together and to the compute type
  SharedPanels panels;
  std::int64_t block_rows() const { return block_strips * strip; }
  // A last strip may be split in two.
  std::int64_t kept_rows() const { return block_rows() + strip; }
  std::int64_t all_units(const Problem& p) const {
    return p.batch * p.heads * blocks;
  }
  std::int64_t tasks(const Problem& p) const {
    return (all_units(p) + units - 1) / units;
  }
};

ForwardPlan plan_forward(const Problem& problem, int strip);

// Sums over all keys of a row.
struct RowSums {
  double weight = 0;
  double weight_sq = 0;
  double derivative_sq = 0;
  double derivative_sq_weight = 0;
  double seen = 0;  // keys, counted where a mask or bias may remove some
  double top_score = 0;
};

// What one worker needs for a forward task. W = strip.
template <typename T>
struct ForwardScratch {
  ForwardScratch(Arena& arena, const Problem& p, const ForwardPlan& plan)
      : row_width((std::max({p.d, p.e, plan.k_block}) + 15) / 16 * 16),
        q(arena.take<T>(plan.kept_rows() * p.d)),
        o(arena.take<T>(plan.kept_rows() * p.e)),
        weights(arena.take<T>(plan.k_block * plan.strip)),
        bias(arena.take<T>(plan.k_block * plan.strip)),
        rows(arena.take<T>(plan.strip * row_width)),
        k(arena.take<T>(plan.copy_k ? plan.k_block * spread_width<T>(p.d) : 0)),
        v(arena.take<T>(plan.copy_v ? plan.k_block * spread_width<T>(p.e) : 0)),
        shift(arena.take<T>(plan.kept_rows())),
        sums(arena.take<RowSums>(plan.kept_rows())) {}

  std::int64_t row_width;
  T* q;           // [strips, D, W]: queries times scale
  T* o;           // [strips, E, W]: output, before the row scale
  T* weights;     // [k_block, W]: scores, then weights
  T* bias;        // [k_block, W]
  T* rows;        // [W, row_width]: rows on their way in or out
  T* k;           // [k_block, spread_width(D)]
  T* v;           // [k_block, spread_width(E)]
  T* shift;       // [kept_rows]
  RowSums* sums;  // [kept_rows]
};

// The workspace of a call: a share of the statistics for each task, and room
// for each worker.
template <typename Scratch, typename Plan>
class WorkerRooms {
 public:
  WorkerRooms(Arena& arena, const Problem& p, const Plan& plan, int workers)
      : p_(p), plan_(plan) {
    Arena measure(nullptr);
    Scratch(measure, p, plan);
    bytes_ = static_cast<std::int64_t>(measure.used());
    rooms_ = arena.take<std::byte>(bytes_ * workers);
  }

  Scratch of(int worker) const {
    Arena arena(rooms_ + bytes_ * worker);
    return Scratch(arena, p_, plan_);
  }

 private:
  const Problem& p_;
  const Plan& plan_;
  std::int64_t bytes_;
  std::byte* rooms_;
};

template <typename T>
struct ForwardStorage {
  ForwardStorage(Arena& arena, const Problem& p, const ForwardPlan& plan,
                 int workers)
      : stats(arena.take<AttentionStats>(plan.all_units(p))),
        panels(arena, plan.panels, plan.strip),
        rooms(arena, p, plan, workers) {}

  AttentionStats* stats;  // [B * H, blocks]
  PanelStorage<T> panels;
  WorkerRooms<ForwardScratch<T>, ForwardPlan> rooms;
};

// The statistics of the parts of one head, added up in order.
AttentionStats add_stats(std::span<const AttentionStats> parts);

// The gradient of a bias, which many pairs of a sequence and a key head may
// share. A family is the pairs that add to the same entries. Its members are
// spread over `parts` sums, member i to part i % parts, so that as many of them
// may run at once, each part adding in one order; the parts are then added up.
// Without such a gradient every pair is a family.
struct BiasPlan {
  std::int64_t families = 0, members = 1, parts = 1;
  std::int64_t sequences = 0;  // with entries of their own
  std::int64_t slices = 0;  // of one part: those of the batch and of the heads
  std::int64_t strips = 0;  // of queries in a slice; 1 if queries share theirs
  std::int64_t keys = 0;    // in a slice; 1 if keys share theirs
  bool by_head = true;      // a family has one key head
  std::int64_t slice_size(std::int64_t strip) const {
    return strips * keys * strip;
  }
  std::int64_t part_of(std::int64_t pair, std::int64_t kv_heads) const {
    const std::int64_t round = pair / kv_heads / sequences;
    return (by_head ? round : round * kv_heads + pair % kv_heads) % parts;
  }
  std::int64_t pair_of(std::int64_t family, std::int64_t member,
                       std::int64_t kv_heads) const {
    if (by_head) return family + member * sequences * kv_heads;
    const std::int64_t b = family + member / kv_heads * sequences;
    return b * kv_heads + member % kv_heads;
  }
};

// Backward, for each pair of a sequence and a key head: the score matrices of
// the heads of the group are cut into a grid of chunks. A tile of the grid adds
// to dk, dv of its keys and to dq of its queries, so tiles that share neither
// may run at once: round t holds the tiles with (query chunk + key chunk) mod
// chunks = t. Rounds run one after the other, hence every sum has one order.
// Under causality each round keeps about half of its tiles. A window leaves
// those along the diagonal, which (query chunk - key chunk) mod chunks = t
// brings into few rounds.
struct BackwardPlan {
  std::int64_t strip;          // queries in a full strip
  std::int64_t chunks;         // along both sides of the grid; also the rounds
  std::int64_t q_chunk;        // queries of a tile, in each head of the group
  std::int64_t k_chunk;        // keys of a tile
  std::int64_t q_step;         // queries that are worked on together
  std::int64_t q_block;        // the same of the last ones: a few more at most
  std::int64_t k_block;        // keys that are worked on together
  std::int64_t pairs_at_once;  // pairs that have accumulators
  bool copy_k, copy_v;         // as in ForwardPlan
  SharedPanels panels;
  BiasPlan bias;
  std::int64_t lines;  // of pairs in a task, where chunks is 1
  bool diagonal;       // rounds run along it
  std::int64_t query_chunk(std::int64_t round, std::int64_t key_chunk) const {
    return (diagonal ? round + key_chunk : round + chunks - key_chunk) % chunks;
  }
  std::int64_t all_lines() const { return bias.families * bias.parts; }
  std::int64_t lanes() const { return strip / 2; }
  std::int64_t most_single_rows() const { return lanes() / 2; }
  std::int64_t pairs(const Problem& p) const { return p.batch * p.kv_heads; }
};

BackwardPlan plan_backward(const Problem& problem, int strip);

// Gradients of a pair while they are being summed. W = strip.
template <typename T>
struct Accumulators {
  Accumulators(Arena& arena, const Problem& p, const BackwardPlan& plan)
      : d_width(round_up(p.d, plan.lanes())),
        e_width(round_up(p.e, plan.lanes())),
        head_rows(plan.chunks * plan.q_chunk),
        dq(arena.take<T>((p.kv_heads > 0 ? p.heads / p.kv_heads : 0) *
                         head_rows * d_width)),
        dk(arena.take<T>(p.m * d_width)),
        dv(arena.take<T>(p.m * e_width)) {}

  static std::int64_t round_up(std::int64_t x, std::int64_t step) {
    return (x + step - 1) / step * step;
  }

  std::int64_t d_width, e_width, head_rows;
  T* dq;  // [heads of the group, head_rows, d_width], before the scale
  T* dk;  // [M, d_width]
  T* dv;  // [M, e_width]
};

// What one worker needs for a tile.
template <typename T>
struct BackwardScratch {
  BackwardScratch(Arena& arena, const Problem& p, const BackwardPlan& plan)
      : row_width((std::max({p.d, p.e, plan.k_block}) + 15) / 16 * 16),
        ld(spread_width<T>(plan.q_block)),
        q_columns(arena.take<T>(plan.q_block * p.d)),
        do_columns(arena.take<T>(plan.q_block * p.e)),
        q_rows(arena.take<T>(plan.most_single_rows() * p.d)),
        do_rows(arena.take<T>(plan.most_single_rows() * p.e)),
        q_panels(arena.take<T>(plan.q_block * panels(p.d, plan))),
        do_panels(arena.take<T>(plan.q_block * panels(p.e, plan))),
        weights(arena.take<T>(plan.k_block * ld)),
        grads(arena.take<T>(plan.k_block * ld)),
        bias(arena.take<T>(plan.k_block * plan.strip)),
        dropped(arena.take<T>(p.dropout.p > 0 ? plan.k_block * plan.strip : 0)),
        rows(arena.take<T>(plan.strip * row_width)),
        k(arena.take<T>(plan.copy_k ? plan.k_block * spread_width<T>(p.d) : 0)),
        v(arena.take<T>(plan.copy_v ? plan.k_block * spread_width<T>(p.e) : 0)),
        shift(arena.take<T>(plan.q_block)),
        scale(arena.take<T>(plan.q_block)),
        delta(arena.take<T>(plan.q_block)) {}

  static std::int64_t panels(std::int64_t width, const BackwardPlan& plan) {
    return Accumulators<T>::round_up(width, plan.strip);
  }

  std::int64_t row_width;
  std::int64_t ld;
  T* q_columns;   // [strips, D, W]: queries times scale
  T* do_columns;  // [strips, E, W]: d_o times the row scale
  T* q_rows;      // [most_single_rows, D]: those that are in no strip
  T* do_rows;     // [most_single_rows, E]
  T* q_panels;    // [D / W, q_block, W]
  T* do_panels;   // [E / W, q_block, W]
  T* weights;     // [k_block, ld]: scores, then weights
  T* grads;       // [k_block, ld]: their gradients
  T* bias;        // [k_block, W]
  T* dropped;     // [k_block, W]: bits where dropout removes the weight
  T* rows;        // [W, row_width]: rows on their way in or out
  T* k;           // [k_block, spread_width(D)]
  T* v;           // [k_block, spread_width(E)]
  T* shift;       // [q_block]
  T* scale;       // [q_block]
  T* delta;       // [q_block]: what `sum` subtracts from the gradients
};

// The gradient of the bias while it is being summed. W = strip.
template <typename T>
struct BiasSums {
  BiasSums(Arena& arena, const BackwardPlan& plan)
      : slice_size(plan.bias.slice_size(plan.strip)),
        part_size(plan.bias.slices * slice_size),
        data(arena.take<T>(plan.bias.parts * part_size)) {}

  std::int64_t slice_size, part_size;
  T* data;  // [parts, slices, strips, keys, W]
};

template <typename T>
struct BackwardStorage {
  // With one chunk a worker finishes a pair by itself.
  BackwardStorage(Arena& arena, const Problem& p, const BackwardPlan& plan,
                  int workers)
      : slots(
            arena, p, plan,
            plan.chunks == 1 ? workers : static_cast<int>(plan.pairs_at_once)),
        panels(arena, plan.panels, plan.strip),
        bias(arena, plan),
        rooms(arena, p, plan, workers) {}

  WorkerRooms<Accumulators<T>, BackwardPlan> slots;
  PanelStorage<T> panels;
  BiasSums<T> bias;
  WorkerRooms<BackwardScratch<T>, BackwardPlan> rooms;
};

}  // namespace polyattn
