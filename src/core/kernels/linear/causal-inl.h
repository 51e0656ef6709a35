// Causal attention in linear time: the sequence in chunks, dense inside a chunk
// (dense-inl.h), a state between chunks.
//
// A round is a few chunks. First each group of features goes through the chunks
// of the round in order, with its own part of the state, and leaves what it
// gives to them; then the chunks are ended independently of each other. So the
// memory does not grow with the length, one head keeps many workers busy, and
// every sum has one order.
//
// Backward goes over the sequence twice: forward in time with the state of the
// keys, for dq, and backward in time with that of the queries, for dk and dv.
//
// Decay fades the state over each chunk, and what it gives by the time from the
// edge of the chunk: `since` for queries, `until` for keys (linear_plan.h).
#if defined(POLYATTN_KERNELS_LINEAR_CAUSAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYATTN_KERNELS_LINEAR_CAUSAL_INL_H_
#undef POLYATTN_KERNELS_LINEAR_CAUSAL_INL_H_
#else
#define POLYATTN_KERNELS_LINEAR_CAUSAL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/kernels/linear/call-inl.h"
#include "core/kernels/linear/dense-inl.h"
#include "core/kernels/linear/faded-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace polyattn {
namespace HWY_NAMESPACE {

// Some pairs on their way through the chunks.
template <typename T>
class CausalSweep {
 public:
  CausalSweep(const LinearCall<T>& call, std::int64_t first, std::int64_t slots,
              Parallel& parallel)
      : call_(call),
        p_(call.p),
        plan_(call.plan),
        store_(call.storage),
        first_(first),
        slots_(slots),
        parallel_(parallel) {}

  void Forward() {
    ClearStates(0);
    for (std::int64_t slot = 0; slot < slots_; ++slot) Seen(slot)[0] = 0;
    InRounds([&](std::int64_t begin) {
      CountSeen(begin);
      ByGroups([&](const LinearTask<T>& task, const GroupOf& g) {
        for (std::int64_t c = 0; c < plan_.round; ++c)
          GroupOutputs(task, g, begin, c);
      });
      ByChunks(store_.members, [&](LinearTask<T>& task, const PlaceOf& at) {
        EndOutputs(task, at, begin);
      });
    });
  }

  void Backward() {
    if (call_.out->dq) {
      ClearStates(0);
      InRounds([&](std::int64_t begin) {
        ByGroups([&](const LinearTask<T>& task, const GroupOf& g) {
          for (std::int64_t c = 0; c < plan_.round; ++c)
            GroupQueryGrads(task, g, begin, c);
        });
        ByChunks(store_.members, [&](LinearTask<T>& task, const PlaceOf& at) {
          EndQueryGrads(task, at, begin);
        });
      });
    }
    if (!call_.out->dk && !NeedsValueGrads()) return;
    ClearStates(1);
    BackInRounds([&](std::int64_t begin) {
      ByGroups([&](const LinearTask<T>& task, const GroupOf& g) {
        for (std::int64_t c = plan_.round - 1; c >= 0; --c)
          GroupKeyGrads(task, g, begin, c);
      });
      ByChunks(1, [&](LinearTask<T>& task, const PlaceOf& at) {
        EndKeyGrads(task, at, begin);
      });
    });
  }

 private:
  struct GroupOf {
    std::int64_t slot, group;
  };
  struct PlaceOf {
    std::int64_t slot, member, c;
  };

  static constexpr std::int64_t kTokens = kStripTokens;

  bool NeedsValueGrads() const {
    return call_.out->dv || call_.out->d_log_decay;
  }
  std::int64_t* Seen(std::int64_t slot) const {
    return store_.seen + slot * (plan_.round + 1);
  }
  HeadOf Head(std::int64_t slot, std::int64_t member) const {
    return call_.head(first_ + slot, member);
  }
  TimeLine Line(std::int64_t slot) const {
    return TimeLine(p_, Head(slot, 0).seq);
  }
  Chunk ChunkAt(std::int64_t slot, std::int64_t begin, std::int64_t c) const {
    return Chunk(Line(slot), begin + c * plan_.chunk, plan_.chunk);
  }
  // At least one round ends what has no chunk: rows that see nothing, keys that
  // nobody sees.
  std::int64_t Longest() const {
    std::int64_t longest = 1;
    for (std::int64_t slot = 0; slot < slots_; ++slot)
      longest = std::max(longest, Line(slot).length);
    return longest;
  }
  T* Part(std::int64_t slot, std::int64_t group, std::int64_t member) const {
    return store_.slot_part(plan_, slot, group, member);
  }
  // A strip of a part that has [D, kStripTokens] for each strip.
  T* StripOf(T* part, std::int64_t c, std::int64_t token) const {
    return part + (c * plan_.chunk + token) * p_.d;
  }
  // Rows of values behind the strips of a part.
  T* ValuesOf(T* part) const { return part + plan_.round_tokens() * p_.d; }

  template <typename F>
  void InRounds(F&& f) {
    const std::int64_t end = Longest();
    for (std::int64_t t = 0; t < end; t += plan_.round_tokens()) f(t);
  }
  template <typename F>
  void BackInRounds(F&& f) {
    const std::int64_t step = plan_.round_tokens();
    const std::int64_t rounds = (Longest() + step - 1) / step;
    for (std::int64_t r = rounds - 1; r >= 0; --r) f(r * step);
  }
  template <typename F>
  void ByGroups(F&& f) {
    parallel_.run(slots_ * plan_.groups, [&](std::int64_t number, int worker) {
      const LinearTask<T> task(call_, worker);
      f(task, GroupOf{number / plan_.groups, number % plan_.groups});
    });
  }
  template <typename F>
  void ByChunks(std::int64_t members, F&& f) {
    const std::int64_t each = members * plan_.round;
    parallel_.run(slots_ * each, [&](std::int64_t number, int worker) {
      LinearTask<T> task(call_, worker);
      f(task, PlaceOf{number / each, number % each / plan_.round,
                      number % plan_.round});
    });
  }

  void ClearStates(int which) {
    ByGroups([&](const LinearTask<T>& task, const GroupOf& g) {
      task.Clear(task.Group(g.slot, which, g.group));
    });
  }

  // seen[c] = keys that the mask keeps before chunk c of the round.
  void CountSeen(std::int64_t begin) {
    for (std::int64_t slot = 0; slot < slots_; ++slot) {
      std::int64_t* seen = Seen(slot);
      if (begin > 0) seen[0] = seen[plan_.round];
      for (std::int64_t c = 0; c < plan_.round; ++c) {
        const Chunk chunk = ChunkAt(slot, begin, c);
        seen[c + 1] =
            seen[c] + CountKept(p_, Head(slot, 0), chunk.k0, chunk.k1);
      }
    }
  }

  void GroupOutputs(const LinearTask<T>& task, const GroupOf& g,
                    std::int64_t begin, std::int64_t c) const {
    const Chunk chunk = ChunkAt(g.slot, begin, c);
    const StatePart<T> part = task.Group(g.slot, 0, g.group);
    for (std::int64_t m = 0; m < store_.members; ++m) {
      const HeadOf head = Head(g.slot, m);
      T* to = Part(g.slot, g.group, m) + c * plan_.chunk * plan_.width;
      std::fill_n(to, chunk.queries() * plan_.width, T{0});
      // Nothing is in the state before the first key.
      for (std::int64_t i = chunk.q0; i < chunk.q1 && chunk.k0 > 0;
           i += kTokens) {
        const std::int64_t count = std::min(kTokens, chunk.q1 - i);
        task.rows.LoadQueries(head, i, count, task.w.strip_x, kTokens);
        ApplyState(plan_, part, count, task.w,
                   to + (i - chunk.q0) * plan_.width, plan_.width);
      }
    }
    if (!chunk.last)
      task.AdvanceKeys(part, Head(g.slot, 0), chunk.k0, chunk.k1);
  }

  void EndOutputs(LinearTask<T>& task, const PlaceOf& at,
                  std::int64_t begin) const {
    const HeadOf head = Head(at.slot, at.member);
    const Chunk chunk = ChunkAt(at.slot, begin, at.c);
    const TimeLine line = Line(at.slot);
    if (begin == 0 && at.c == 0)
      for (std::int64_t i = 0; i < line.blind; ++i) EndBlind(task, head, i);
    if (chunk.queries() == 0) return;
    if (p_.decays()) return EndFadedOutputs(task, at, chunk);
    const ChunkScratch<T> w = task.Chunk();
    if (chunk.keys() > 0) DenseForward(call_, head, chunk, w);
    std::int64_t seen = Seen(at.slot)[at.c], next = chunk.k0;
    for (std::int64_t i = chunk.q0; i < chunk.q1; ++i) {
      const std::int64_t end = std::clamp(i + line.shift + 1, next, chunk.k1);
      seen += CountKept(p_, head, next, end);
      next = end;
      EndOutput(task, w, at, chunk, i, seen);
    }
  }

  void EndBlind(const LinearTask<T>& task, const HeadOf& head,
                std::int64_t i) const {
    std::fill_n(task.w.rows, plan_.columns, T{0});
    task.EndRow(head, i, 0, task.w.rows);
  }

  void EndOutput(const LinearTask<T>& task, const ChunkScratch<T>& w,
                 const PlaceOf& at, const Chunk& chunk, std::int64_t i,
                 std::int64_t seen) const {
    const std::int64_t r = i - chunk.q0;
    T* sums = task.w.rows;
    std::fill_n(sums, plan_.width, T{0});
    if (chunk.keys() > 0) {
      T size = 1;
      if (plan_.columns > p_.e) {
        const double scale = w.row_states[r].scale;
        size = scale == 0 ? T{0} : static_cast<T>(1 / scale);
        sums[p_.e] = static_cast<T>(plan_.sum_sign) * size;
      }
      for (std::int64_t c = 0; c < p_.e; ++c)
        sums[c] = w.a[r * p_.e + c] * size;
    }
    AddParts(at, at.member, at.c * plan_.chunk + r, sums);
    task.EndRow(Head(at.slot, at.member), i, static_cast<double>(seen), sums);
  }

  // What the groups give to a row of the round.
  void AddParts(const PlaceOf& at, std::int64_t member, std::int64_t row,
                T* sums) const {
    for (std::int64_t g = 0; g < plan_.groups; ++g) {
      const T* from = Part(at.slot, g, member) + row * plan_.width;
      for (std::int64_t c = 0; c < plan_.columns; ++c) sums[c] += from[c];
    }
  }

  void EndFadedOutputs(LinearTask<T>& task, const PlaceOf& at,
                       const Chunk& chunk) const {
    const HeadOf head = Head(at.slot, at.member);
    const FadedScratch<T> w = task.Faded();
    const FadedChunk<T> own(call_, task, w, head, chunk);
    own.Forward(head);
    const T* fade = FadeQueries(task, head, chunk);
    for (std::int64_t r = 0; r < chunk.queries(); ++r) {
      T* sums = task.w.rows;
      std::fill_n(sums, plan_.width, T{0});
      AddParts(at, at.member, at.c * plan_.chunk + r, sums);
      const T since = fade[r];
      const T* from = w.sums + r * plan_.width;
      for (std::int64_t c = 0; c < plan_.columns; ++c)
        sums[c] = from[c] + (since == 0 ? T{0} : since * sums[c]);
      task.EndRow(head, chunk.q0 + r, RowN(head, chunk.q0 + r), sums);
    }
  }

  // N of row i.
  double RowN(const HeadOf& head, std::int64_t i) const {
    const std::int64_t keys = p_.keys_of(head.seq, i).end;
    const DecayStorage& decay = call_.storage.decay;
    return keys == 0 ? 0 : decay.n[decay.index(head.seq, head.key, keys - 1)];
  }

  void GroupQueryGrads(const LinearTask<T>& task, const GroupOf& g,
                       std::int64_t begin, std::int64_t c) const {
    const Chunk chunk = ChunkAt(g.slot, begin, c);
    const StatePart<T> part = task.Group(g.slot, 0, g.group);
    const T* fade = FadeQueries(task, Head(g.slot, 0), chunk);
    for (std::int64_t m = 0; m < store_.members; ++m) {
      const HeadOf head = Head(g.slot, m);
      for (std::int64_t i = chunk.q0; i < chunk.q1; i += kTokens) {
        const std::int64_t count = std::min(kTokens, chunk.q1 - i);
        T* dx = StripOf(Part(g.slot, g.group, m), c, i - chunk.q0);
        std::fill_n(dx, p_.d * kTokens, T{0});
        if (chunk.k0 == 0) continue;
        task.rows.LoadGradColumns(head, *call_.back, i, count,
                                  FadeFrom(fade, i - chunk.q0));
        task.rows.LoadQueries(head, i, count, task.w.strip_x, kTokens);
        StateGradient(plan_, part, count, task.w, dx);
      }
    }
    if (!chunk.last)
      task.AdvanceKeys(part, Head(g.slot, 0), chunk.k0, chunk.k1);
  }

  // Decay from before the chunk to each of its queries; null without decay.
  const T* FadeQueries(const LinearTask<T>& task, const HeadOf& head,
                       const Chunk& chunk) const {
    if (!p_.decays()) return nullptr;
    task.FadeSinceBegin(head, chunk.k0, chunk.k1, chunk.lead + chunk.queries());
    return task.w.since + chunk.lead;
  }
  static const T* FadeFrom(const T* fade, std::int64_t token) {
    return fade == nullptr ? nullptr : fade + token;
  }

  // The parts of a strip, added up.
  void AddStrips(const LinearTask<T>& task, const PlaceOf& at,
                 std::int64_t token) const {
    T* sum = task.w.strip_dx;
    std::fill_n(sum, p_.d * kTokens, T{0});
    for (std::int64_t g = 0; g < plan_.groups; ++g) {
      const T* from = StripOf(Part(at.slot, g, at.member), at.c, token);
      for (std::int64_t e = 0; e < p_.d * kTokens; ++e) sum[e] += from[e];
    }
  }

  void EndQueryGrads(LinearTask<T>& task, const PlaceOf& at,
                     std::int64_t begin) const {
    const HeadOf head = Head(at.slot, at.member);
    const Chunk chunk = ChunkAt(at.slot, begin, at.c);
    const Tensor& dq = *call_.out->dq;
    const TimeLine line = Line(at.slot);
    if (begin == 0 && at.c == 0)
      task.WriteZeros(dq, head.seq.batch, head.query, head.seq.q_begin,
                      head.seq.q_begin + line.blind);
    if (chunk.queries() == 0) return;
    if (p_.decays()) return EndFadedQueryGrads(task, at, chunk);
    const ChunkScratch<T> w = task.Chunk();
    std::fill_n(w.a, chunk.queries() * p_.d, T{0});
    if (chunk.keys() > 0) {
      const Extents size = {1, 1, chunk.queries(), p_.d};
      DenseBackward(call_, head, 1, chunk, w,
                    {.dq = view(w.a, kDTypeOf<T>, size)});
    }
    const T scale = static_cast<T>(p_.scale);
    for (std::int64_t i = chunk.q0; i < chunk.q1; i += kTokens) {
      const std::int64_t count = std::min(kTokens, chunk.q1 - i);
      AddStrips(task, at, i - chunk.q0);
      task.rows.ToRows(task.w.strip_dx, p_.d, count);
      for (std::int64_t r = 0; r < count; ++r) {
        T* row = task.rows.BufferRow(r);
        const T* own = w.a + (i - chunk.q0 + r) * p_.d;
        for (std::int64_t c = 0; c < p_.d; ++c)
          row[c] = row[c] * scale + own[c];
        task.WriteRow(dq, head.seq.batch, head.query, head.seq.q_begin + i + r,
                      row, T{1});
      }
    }
  }

  void EndFadedQueryGrads(LinearTask<T>& task, const PlaceOf& at,
                          const Chunk& chunk) const {
    const HeadOf head = Head(at.slot, at.member);
    const FadedScratch<T> w = task.Faded();
    const FadedChunk<T> own(call_, task, w, head, chunk);
    for (std::int64_t i = chunk.q0; i < chunk.q1; i += kTokens) {
      const std::int64_t count = std::min(kTokens, chunk.q1 - i);
      AddStrips(task, at, i - chunk.q0);
      own.AddQueryGrads(head, i);
      task.rows.ToRows(task.w.strip_dx, p_.d, count);
      for (std::int64_t r = 0; r < count; ++r)
        task.WriteRow(*call_.out->dq, head.seq.batch, head.query,
                      head.seq.q_begin + i + r, task.rows.BufferRow(r),
                      static_cast<T>(p_.scale));
    }
  }

  void GroupKeyGrads(const LinearTask<T>& task, const GroupOf& g,
                     std::int64_t begin, std::int64_t c) const {
    const Chunk chunk = ChunkAt(g.slot, begin, c);
    const StatePart<T> part = task.Group(g.slot, 1, g.group);
    const HeadOf head = Head(g.slot, 0);
    T* own = Part(g.slot, g.group, 0);
    double all = 1;
    if (p_.decays()) all = task.FadeUntilEnd(head, chunk.k0, chunk.k1);
    const T* until = p_.decays() ? task.w.until : nullptr;
    for (std::int64_t j = chunk.k0; j < chunk.k1; j += kTokens) {
      const std::int64_t count = std::min(kTokens, chunk.k1 - j);
      T* dx = StripOf(own, c, j - chunk.k0);
      T* dv = ValuesOf(own) + (c * plan_.chunk + j - chunk.k0) * plan_.width;
      std::fill_n(dx, p_.d * kTokens, T{0});
      std::fill_n(dv, count * plan_.width, T{0});
      task.rows.LoadKeys(head, j, count, task.w.strip_x, kTokens);
      if (NeedsValueGrads())
        ApplyState(plan_, part, count, task.w, dv, plan_.width);
      if (!call_.out->dk) continue;
      task.rows.LoadValueColumns(head, j, count, FadeFrom(until, j - chunk.k0));
      StateGradient(plan_, part, count, task.w, dx);
    }
    if (chunk.k0 == 0) return;  // nothing is before the first key
    task.FadeState(part, all);
    const T* since = FadeQueries(task, head, chunk);
    for (std::int64_t m = 0; m < store_.members; ++m)
      task.AddQueries(part, Head(g.slot, m), chunk.q0, chunk.q1, since);
  }

  void EndKeyGrads(LinearTask<T>& task, const PlaceOf& at,
                   std::int64_t begin) const {
    const HeadOf head = Head(at.slot, 0);
    const Chunk chunk = ChunkAt(at.slot, begin, at.c);
    if (begin == 0 && at.c == 0) EndUnseenKeys(task, head);
    if (call_.out->d_log_decay) PullOfRows(task, at, chunk);
    if (chunk.keys() == 0) return;
    if (p_.decays()) return EndFadedKeyGrads(task, at, chunk);
    const ChunkScratch<T> w = task.Chunk();
    std::fill_n(w.a, chunk.keys() * p_.d, T{0});
    std::fill_n(w.b, chunk.keys() * p_.e, T{0});
    AttentionGradients own;
    if (call_.out->dk)
      own.dk = view(w.a, kDTypeOf<T>, {1, 1, chunk.keys(), p_.d});
    if (call_.out->dv)
      own.dv = view(w.b, kDTypeOf<T>, {1, 1, chunk.keys(), p_.e});
    if (chunk.queries() > 0)
      DenseBackward(call_, head, store_.members, chunk, w, own);
    for (std::int64_t j = chunk.k0; j < chunk.k1; j += kTokens)
      EndKeyStrip(task, w, at, chunk, j);
  }

  void EndKeyStrip(const LinearTask<T>& task, const ChunkScratch<T>& w,
                   const PlaceOf& at, const Chunk& chunk,
                   std::int64_t j) const {
    const HeadOf head = Head(at.slot, 0);
    const std::int64_t count = std::min(kTokens, chunk.k1 - j);
    const std::uint8_t* keep = task.rows.Keep(head, j, count);
    const auto write = [&](const Tensor& t, std::int64_t r, const T* row) {
      const bool kept = keep == nullptr || keep[r] != 0;
      task.WriteRow(t, head.seq.batch, head.key, head.seq.k_begin + j + r, row,
                    kept ? T{1} : T{0});
    };
    if (call_.out->dk) {
      AddStrips(task, at, j - chunk.k0);
      task.rows.ToRows(task.w.strip_dx, p_.d, count);
    }
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t token = j - chunk.k0 + r;
      if (call_.out->dk) {
        T* row = task.rows.BufferRow(r);
        for (std::int64_t c = 0; c < p_.d; ++c) row[c] += w.a[token * p_.d + c];
        write(*call_.out->dk, r, row);
      }
      if (!call_.out->dv) continue;
      T* sum = w.b + token * p_.e;
      for (std::int64_t g = 0; g < plan_.groups; ++g) {
        const T* from = ValuesOf(Part(at.slot, g, 0)) +
                        (at.c * plan_.chunk + token) * plan_.width;
        for (std::int64_t c = 0; c < p_.e; ++c) sum[c] += from[c];
      }
      write(*call_.out->dv, r, sum);
    }
  }

  // o . do of the chunk's rows.
  void PullOfRows(const LinearTask<T>& task, const PlaceOf& at,
                  const Chunk& chunk) const {
    for (std::int64_t m = 0; m < store_.members; ++m) {
      const HeadOf head = Head(at.slot, m);
      for (std::int64_t i = chunk.q0; i < chunk.q1; ++i)
        store_.decay.row_pull[p_.row_index(head.b, head.query, i)] =
            task.rows.OutputDot(head, *call_.back, i);
    }
  }

  void EndFadedKeyGrads(LinearTask<T>& task, const PlaceOf& at,
                        const Chunk& chunk) const {
    const HeadOf head = Head(at.slot, 0);
    const FadedScratch<T> w = task.Faded();
    const FadedChunk<T> own(call_, task, w, head, chunk);
    own.ClearKeyGrads();
    for (std::int64_t m = 0; m < store_.members; ++m)
      own.AddKeyGrads(Head(at.slot, m));
    task.FadeUntilEnd(head, chunk.k0, chunk.k1);
    for (std::int64_t j = 0; j < chunk.keys(); ++j) {
      T* sums = task.w.rows;
      std::fill_n(sums, plan_.width, T{0});
      for (std::int64_t g = 0; g < plan_.groups; ++g) {
        const T* from = ValuesOf(Part(at.slot, g, 0)) +
                        (at.c * plan_.chunk + j) * plan_.width;
        for (std::int64_t c = 0; c < plan_.columns; ++c) sums[c] += from[c];
      }
      T* dv = w.sums + j * plan_.width;
      const T until = task.w.until[j];
      for (std::int64_t c = 0; c < plan_.columns && until != 0; ++c)
        dv[c] += until * sums[c];
      if (call_.out->d_log_decay) PullOfKey(head, chunk.k0 + j, w, j);
    }
    for (std::int64_t j = chunk.k0; j < chunk.k1; j += kTokens)
      WriteFadedKeys(task, w, at, chunk, j);
  }

  // v . dv of the key, where v has the ones of `sum` too.
  void PullOfKey(const HeadOf& head, std::int64_t key, const FadedScratch<T>& w,
                 std::int64_t j) const {
    const T* v = w.v + j * plan_.width;
    const T* dv = w.sums + j * plan_.width;
    double dot = 0;
    for (std::int64_t c = 0; c < plan_.columns; ++c)
      dot += static_cast<double>(v[c]) * static_cast<double>(dv[c]);
    store_.decay.pull[store_.decay.index(head.seq, head.key, key)] = dot;
  }

  void WriteFadedKeys(const LinearTask<T>& task, const FadedScratch<T>& w,
                      const PlaceOf& at, const Chunk& chunk,
                      std::int64_t j) const {
    const HeadOf head = Head(at.slot, 0);
    const std::int64_t count = std::min(kTokens, chunk.k1 - j);
    const std::uint8_t* keep = task.rows.Keep(head, j, count);
    if (call_.out->dk) {
      AddStrips(task, at, j - chunk.k0);
      task.rows.ToRows(task.w.strip_dx, p_.d, count);
    }
    for (std::int64_t r = 0; r < count; ++r) {
      const T kept = keep == nullptr || keep[r] != 0 ? T{1} : T{0};
      const std::int64_t token = j - chunk.k0 + r;
      const std::int64_t at_row = head.seq.k_begin + j + r;
      if (call_.out->dk) {
        T* row = task.rows.BufferRow(r);
        const T* own = w.dk + token * w.k_width;
        for (std::int64_t c = 0; c < p_.d; ++c) row[c] += own[c];
        task.WriteRow(*call_.out->dk, head.seq.batch, head.key, at_row, row,
                      kept);
      }
      if (call_.out->dv)
        task.WriteRow(*call_.out->dv, head.seq.batch, head.key, at_row,
                      w.sums + token * plan_.width, kept);
    }
  }

  // Keys that no query sees.
  void EndUnseenKeys(const LinearTask<T>& task, const HeadOf& head) const {
    const TimeLine line(p_, head.seq);
    const std::int64_t from = head.seq.k_begin + line.keys;
    const std::int64_t end = head.seq.k_begin + head.seq.m;
    if (call_.out->dk)
      task.WriteZeros(*call_.out->dk, head.seq.batch, head.key, from, end);
    if (call_.out->dv)
      task.WriteZeros(*call_.out->dv, head.seq.batch, head.key, from, end);
  }

  const LinearCall<T>& call_;
  const Problem& p_;
  const LinearPlan& plan_;
  const LinearStorage<T>& store_;
  const std::int64_t first_, slots_;
  Parallel& parallel_;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace polyattn
HWY_AFTER_NAMESPACE();

#endif
