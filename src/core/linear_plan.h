// How a call in linear time is cut into tasks and what memory each needs. As in
// plan.h, everything follows from the shape.
//
// A pair is a sequence and a key head. Its state is F(K)^T V: [R, E], where R
// counts the features (features.h). Where the divisor is `sum`, v has one more
// column, of ones, so that the state holds the sum of the weights too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/arena.h"
#include "core/features.h"
#include "core/plan.h"
#include "core/problem.h"

namespace polyattn {

// Keys whose weights are made together inside a chunk of a call with decay.
inline constexpr std::int64_t kFadedKeys = 96;
// Tokens whose features are made together where they meet a state: a multiple
// of all vectors and of the rows of all tiles.
inline constexpr std::int64_t kStripTokens = 48;
// Features that are made together.
inline constexpr std::int64_t kFeatureBlock = 96;

// From row to row of a state: whole vectors of any target.
constexpr std::int64_t state_width(std::int64_t columns) {
  return ceil_div(columns, 16) * 16;
}

// Why the call has no linear time; empty if it has.
std::string linear_obstacle(const Problem& problem);

// 1 if the polynomial is nowhere negative, -1 if nowhere positive, else 0.
int constant_sign(const Activation& polynomial);

struct LinearPlan {
  std::int64_t features;
  std::int64_t columns;  // of v, and one more for `sum`
  std::int64_t width;    // from row to row of a state; the same on all targets
  std::int64_t groups;   // of features, by which a state is cut into tasks
  std::int64_t group;    // features of a group
  std::int64_t chunk;    // tokens that meet their features at once
  std::int64_t round;    // chunks between two meetings of the groups: causal
  std::int64_t block;    // queries or keys of a task: not causal
  std::int64_t slots;    // pairs that have a state at the same time
  double sum_sign;       // of the weights, for `sum`
  int panel;             // columns of a tile

  std::int64_t pairs(const Problem& p) const { return p.batch * p.kv_heads; }
  std::int64_t panels() const { return (columns + panel - 1) / panel; }
  std::int64_t state() const { return features * width; }
  // Tokens of a round, of a head.
  std::int64_t round_tokens() const { return round * chunk; }
};

// `states` of each pair: 1 forward, 2 backward. `panel`: columns of a tile, two
// vectors.
LinearPlan plan_linear(const Problem& problem, int panel, int states);

// One time line for the keys and the queries of a causal sequence: key j is at
// time j, query i at time i + shift, and a query sees the keys up to its time.
struct TimeLine {
  std::int64_t shift = 0;
  std::int64_t keys = 0;     // those beyond are seen by nobody
  std::int64_t blind = 0;    // queries before time 0: they see nothing
  std::int64_t queries = 0;  // all of them
  std::int64_t length = 0;

  TimeLine(const Problem& p, const Sequence& s) {
    shift = p.causal == Causal::kLast ? s.m - s.n : 0;
    keys = s.n == 0 ? 0 : std::clamp<std::int64_t>(s.n + shift, 0, s.m);
    blind = std::clamp<std::int64_t>(-shift, 0, s.n);
    queries = s.n;
    length = s.n == 0 ? 0 : std::max(keys, s.n + shift);
  }
  std::int64_t first_query(std::int64_t time) const {
    return std::clamp<std::int64_t>(time - shift, 0, queries);
  }
  std::int64_t first_key(std::int64_t time) const {
    return std::clamp<std::int64_t>(time, 0, keys);
  }
};

// Room of one worker. W = panel.
template <typename T>
struct LinearScratch {
  LinearScratch(Arena& arena, const Problem& p, const LinearPlan& plan)
      : row_width((std::max(p.d, plan.columns) + 2 * plan.panel) / 16 * 16 +
                  16),
        x(arena.take<T>(p.d * plan.chunk)),
        room(arena.take<T>((kMaxDegree + 1) * plan.chunk)),
        features(arena.take<T>(kFeatureBlock * plan.chunk)),
        panels(arena.take<T>(plan.panels() * plan.panel * plan.chunk)),
        strip_x(arena.take<T>(p.d * kStripTokens)),
        strip_dx(arena.take<T>(p.d * kStripTokens)),
        strip_d(arena.take<T>(plan.columns * kStripTokens)),
        strip_o(arena.take<T>(kStripTokens * row_width)),
        rows(arena.take<T>(kStripTokens * row_width)),
        since(arena.take<T>(p.decays() ? plan.chunk : 0)),
        until(arena.take<T>(p.decays() ? plan.chunk : 0)),
        keep(arena.take<std::uint8_t>(plan.chunk)) {}

  std::int64_t row_width;
  T* x;                // [D, chunk]: tokens
  T* room;             // [kMaxDegree + 1, chunk]: products of prefixes
  T* features;         // [kFeatureBlock, chunk]
  T* panels;           // [panels, chunk, W]: what meets the features
  T* strip_x;          // [D, kStripTokens]
  T* strip_dx;         // [D, kStripTokens]
  T* strip_d;          // [columns, kStripTokens]
  T* strip_o;          // [kStripTokens, row_width]
  T* rows;             // [kStripTokens, row_width]: on their way in or out
  T* since;            // [chunk]: decay from before the chunk to each time
  T* until;            // [chunk]: decay from each key to the end of the chunk
  std::uint8_t* keep;  // [chunk]: zero where a mask removes the key
};

// Causal: room of one worker for what is dense, inside a chunk.
template <typename T>
struct ChunkScratch {
  ChunkScratch(Arena& arena, const Problem& p, const LinearPlan& plan,
               std::size_t dense_bytes)
      : a(arena.take<T>(plan.chunk * std::max(p.d, p.e))),
        b(arena.take<T>(plan.chunk * p.e)),
        row_states(arena.take<RowState>(
            plan.chunk * (p.kv_heads > 0 ? p.heads / p.kv_heads : 0))),
        dense(arena.take<std::byte>(static_cast<std::int64_t>(dense_bytes))) {}

  T* a;                  // [chunk, D or E]
  T* b;                  // [chunk, E]
  RowState* row_states;  // [heads of the pair, chunk]
  std::byte* dense;
};

// With decay: the same (kernels/linear/faded-inl.h).
template <typename T>
struct FadedScratch {
  FadedScratch(Arena& arena, const Problem& p, const LinearPlan& plan)
      : k_width(state_width(p.d)),
        k(arena.take<T>(plan.chunk * k_width)),
        v(arena.take<T>(plan.chunk * plan.width)),
        dk(arena.take<T>(plan.chunk * k_width)),
        sums(arena.take<T>(plan.chunk * plan.width)),
        q(arena.take<T>(kStripTokens * k_width)),
        weights(arena.take<T>(kFadedKeys * kStripTokens)),
        grads(arena.take<T>(kFadedKeys * kStripTokens)),
        table(arena.take<T>(kStripTokens * kStripTokens)),
        by_query(arena.take<T>(kStripTokens)),
        by_key(arena.take<T>(plan.chunk)) {}

  std::int64_t k_width;
  T* k;         // [chunk, k_width]
  T* v;         // [chunk, width]
  T* dk;        // [chunk, k_width]
  T* sums;      // [chunk, width]: of queries, or gradients by values
  T* q;         // [kStripTokens, k_width]
  T* weights;   // [kFadedKeys, kStripTokens]
  T* grads;     // [kFadedKeys, kStripTokens]
  T* table;     // [kStripTokens, kStripTokens]: fades of the last keys
  T* by_query;  // [kStripTokens]: those of all others are a product of a
  T* by_key;    // [chunk]           factor of the query and one of the key
};

// With decay, for a whole call. Numbers of keys are [B, G, M], those of rows
// [B, H, N] ([1, G, total] and [1, H, total] if ragged).
struct DecayStorage {
  DecayStorage(Arena& arena, const Problem& p, bool backward)
      : key_heads(p.kv_heads),
        key_rows(p.in.k.size[2]),
        keys(p.decays() ? p.in.k.size[0] * key_heads * key_rows : 0),
        factor(arena.take<double>(keys)),
        n(arena.take<double>(keys)),
        pull(arena.take<double>(backward ? keys : 0)),
        row_pull(arena.take<double>(
            backward && p.decays() ? p.in.q.size[0] * p.heads * p.in.q.size[2]
                                   : 0)) {}

  std::int64_t index(const Sequence& s, std::int64_t g, std::int64_t j) const {
    return (s.batch * key_heads + g) * key_rows + s.k_begin + j;
  }

  std::int64_t key_heads, key_rows, keys;
  double* factor;    // what the weights of all keys before are multiplied by
  double* n;         // of a row whose last key this is
  double* pull;      // v . dv of the key; then the gradient of log factor
  double* row_pull;  // o . do of the row
};

// The workspace of a call.
template <typename T>
struct LinearStorage {
  LinearStorage(Arena& arena, const Problem& p, const LinearPlan& plan,
                int state_count, std::size_t chunk_bytes, int workers)
      : states(state_count),
        members(p.kv_heads > 0 ? p.heads / p.kv_heads : 0),
        dense_bytes(chunk_bytes),
        state(arena.take<T>(plan.slots * states * plan.state())),
        seen(arena.take<std::int64_t>(plan.slots * (plan.round + 1))),
        decay(arena, p, states > 1) {
    part = plan.round_tokens() * (plan.width + (states > 1 ? p.d : 0));
    parts = arena.take<T>(p.causal == Causal::kNone
                              ? 0
                              : plan.slots * plan.groups *
                                    std::max<std::int64_t>(members, 1) * part);
    Arena measure(nullptr);
    LinearScratch<T>(measure, p, plan);
    if (p.decays()) {
      FadedScratch<T>(measure, p, plan);
    } else if (p.causal != Causal::kNone) {
      ChunkScratch<T>(measure, p, plan, dense_bytes);
    }
    room_bytes = static_cast<std::int64_t>(measure.used());
    rooms = arena.take<std::byte>(room_bytes * workers);
  }

  T* slot_state(const LinearPlan& plan, std::int64_t slot, int which) const {
    return state + (slot * states + which) * plan.state();
  }
  // What a group gives to a head of the pair in a round.
  T* slot_part(const LinearPlan& plan, std::int64_t slot, std::int64_t group,
               std::int64_t member) const {
    return parts + ((slot * plan.groups + group) * members + member) * part;
  }

  int states;
  std::int64_t members;
  std::size_t dense_bytes;
  T* state;
  std::int64_t* seen;  // [slots, round + 1]: keys seen before each chunk
  DecayStorage decay;
  std::int64_t part;
  T* parts;
  std::int64_t room_bytes;
  std::byte* rooms;
};

}  // namespace polyattn
