// The three products of attention in linear time: tokens into a state, a state
// onto tokens, and gradients by tokens through a state. Features exist a block
// at a time, in cache.
//
// Traffic: with 48 tokens to a strip and E = 64, a multiply-add of a core that
// does 16 of them a cycle needs 1.3 bytes of the state a cycle, so a state may
// lie in the last-level cache, or beyond.
#if defined(POLYATTN_KERNELS_LINEAR_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_STATE_INL_H_
#undef POLYATTN_KERNELS_LINEAR_STATE_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_STATE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/linear/features-inl.h"
#include "core/kernels/tile-inl.h"
#include "core/linear_plan.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// The features of a group and their part of a state.
template <typename T>
struct StatePart {
  FeatureCursor cursor;  // at the first of them
  std::int64_t count;
  T* state;  // [count, width]
};

template <typename T>
StatePart<T> PartOf(const Problem& p, const LinearPlan& plan, std::int64_t from,
                    std::int64_t count, T* state) {
  StatePart<T> part{FeatureCursor(p.activation, p.d),
                    std::clamp<std::int64_t>(plan.features - from, 0, count),
                    state + from * plan.width};
  part.cursor.skip(from);
  return part;
}

// state += F(x)^T y for the first `tokens` columns of w.x and rows of w.panels.
template <typename T>
void AddToState(const LinearPlan& plan, const StatePart<T>& part,
                std::int64_t tokens, const LinearScratch<T>& w) {
  const std::int64_t columns =
      (tokens + kStripTokens - 1) / kStripTokens * kStripTokens;
  const Columns<T> in = {w.x, plan.chunk, columns};
  FeatureCursor cursor = part.cursor;
  for (std::int64_t f = 0; f < part.count; f += kFeatureBlock) {
    const std::int64_t count = std::min(kFeatureBlock, part.count - f);
    MakeFeatures(cursor, count, in, false, w.room, w.features);
    for (std::int64_t c = 0; c < plan.columns; c += kStrip<T>) {
      const Operands<T> operands = {.a = w.features,
                                    .lda = plan.chunk,
                                    .b = w.panels + c * plan.chunk,
                                    .ldb = kStrip<T>,
                                    .c = part.state + f * plan.width + c,
                                    .ldc = plan.width,
                                    .apart = true};
      if (plan.columns - c > kLanes<T>) {
        Rows<kStripVectors, Walk::kAlongRows, T>(count, tokens, operands,
                                                 false);
      } else {
        Rows<1, Walk::kAlongRows, T>(count, tokens, operands, false);
      }
    }
  }
}

// o[tokens, ld] += F(x) W state for the tokens of w.strip_x.
template <typename T>
void ApplyState(const LinearPlan& plan, const StatePart<T>& part,
                std::int64_t tokens, const LinearScratch<T>& w, T* o,
                std::int64_t ld) {
  const Columns<T> in = {w.strip_x, kStripTokens, kStripTokens};
  FeatureCursor cursor = part.cursor;
  for (std::int64_t f = 0; f < part.count; f += kFeatureBlock) {
    const std::int64_t count = std::min(kFeatureBlock, part.count - f);
    MakeFeatures(cursor, count, in, true, w.room, w.features);
    RowsByPanels<Walk::kDownColumns, T>(tokens, count, plan.columns, kStrip<T>,
                                        {.a = w.features,
                                         .lda = kStripTokens,
                                         .b = part.state + f * plan.width,
                                         .ldb = plan.width,
                                         .c = o,
                                         .ldc = ld},
                                        true);
  }
}

// dx[D, kStripTokens] += the gradient by the tokens of w.strip_x of
// F(x) W state . d, where d is w.strip_d.
template <typename T>
void StateGradient(const LinearPlan& plan, const StatePart<T>& part,
                   std::int64_t tokens, const LinearScratch<T>& w, T* dx) {
  const Columns<T> in = {w.strip_x, kStripTokens, kStripTokens};
  FeatureCursor cursor = part.cursor;
  for (std::int64_t f = 0; f < part.count; f += kFeatureBlock) {
    const std::int64_t count = std::min(kFeatureBlock, part.count - f);
    RowsByPanels<Walk::kAlongRows, T>(count, plan.columns, tokens, kStrip<T>,
                                      {.a = part.state + f * plan.width,
                                       .lda = plan.width,
                                       .b = w.strip_d,
                                       .ldb = kStripTokens,
                                       .c = w.features,
                                       .ldc = kStripTokens},
                                      false);
    ReduceFeatures(cursor, count, in, w.features, w.room, dx);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
