// How a call of attention_double_backward is cut into tasks, and its memory:
// the grid of backward, with twice as much in each tile.
#pragma once

#include <cstdint>

#include "core/plan.h"
#include "polyattn/double_backward.h"

namespace polyattn {

struct DoublePlan : BackwardPlan {
  bool copy_uk = false, copy_uv = false;
  // The sums of a row that `sum` asks for: none, or by a walk of their own
  // before, unless a block of keys is the whole row.
  bool sums = false, sums_first = false;
  std::int64_t blocks = 0;  // of queries, in that walk
};

DoublePlan plan_double(const Problem& problem,
                       const AttentionDoubleInputs& second, int strip);

// Gradients of a pair while they are being summed. W = strip.
template <typename T>
struct DoubleAccumulators : Accumulators<T> {
  DoubleAccumulators(Arena& arena, const Problem& p, const DoublePlan& plan)
      : Accumulators<T>(arena, p, plan),
        d_o(arena.take<T>((p.kv_heads > 0 ? p.heads / p.kv_heads : 0) *
                          this->head_rows * p.e)) {}

  // dq is [heads of the group, head_rows / W, D, W] here.
  T* d_o;  // [heads of the group, head_rows / W, E, W], before the row scale
};

// The sums of a row over its keys, as polyattn/double_backward.h has them.
struct DoubleSums {
  double tangent = 0;  // sum sign(w) w' t
  double pull = 0;     // sum w p
  double mixed = 0;    // sum (w' t p + w u)
};

// What one worker needs for a tile.
template <typename T>
struct DoubleScratch : BackwardScratch<T> {
  DoubleScratch(Arena& arena, const Problem& p, const DoublePlan& plan)
      : BackwardScratch<T>(arena, p, plan),
        uq_columns(arena.take<T>(plan.q_block * p.d)),
        uq_panels(arena.take<T>(plan.q_block * this->panels(p.d, plan))),
        tangents(arena.take<T>(plan.k_block * this->ld)),
        pulls(arena.take<T>(plan.k_block * this->ld)),
        uk(arena.take<T>(plan.copy_uk ? plan.k_block * spread_width<T>(p.d)
                                      : 0)),
        uv(arena.take<T>(plan.copy_uv ? plan.k_block * spread_width<T>(p.e)
                                      : 0)),
        tangent(arena.take<T>(plan.q_block)),
        rho(arena.take<T>(plan.q_block)),
        sums(arena.take<DoubleSums>(plan.q_block)) {}

  T* uq_columns;  // [strips, D, W]: uq times scale
  T* uq_panels;   // [D / W, q_block, W]
  // Beside `weights` (scores, then weights) and `grads` (p = do v, then the
  // gradients of the scores of the first derivative):
  T* tangents;       // [k_block, ld]: what scores change by, then weights
  T* pulls;          // [k_block, ld]: do uv, then the gradients of the scores
  T* uk;             // [k_block, spread_width(D)]
  T* uv;             // [k_block, spread_width(E)]
  T* tangent;        // [q_block]: what log z changes by; delta is beside it
  T* rho;            // [q_block]
  DoubleSums* sums;  // [q_block]
};

// What the first walk leaves for the second: of each row.
template <typename T>
struct RowPull {
  T tangent, delta, rho;
};

template <typename T>
struct DoubleStorage {
  DoubleStorage(Arena& arena, const Problem& p, const DoublePlan& plan,
                int workers)
      : slots(
            arena, p, plan,
            plan.chunks == 1 ? workers : static_cast<int>(plan.pairs_at_once)),
        panels(arena, plan.panels, plan.strip),
        bias(arena, plan),
        pulls(arena.take<RowPull<T>>(
            plan.sums_first ? p.in.q.size[0] * p.heads * p.in.q.size[2] : 0)),
        rooms(arena, p, plan, workers) {}

  WorkerRooms<DoubleAccumulators<T>, DoublePlan> slots;
  PanelStorage<T> panels;
  BiasSums<T> bias;
  RowPull<T>* pulls;
  WorkerRooms<DoubleScratch<T>, DoublePlan> rooms;
};

}  // namespace polyattn
