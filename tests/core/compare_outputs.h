// Outputs of two runs against each other.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/error_bound.h"
#include "core/kernel_cases.h"
#include "core/thread_parallel.h"

namespace polyattn::test {

// The buffer with every value replaced by f(index).
template <typename F>
Buffer filled(const Buffer& like, const F& f) {
  const Extents& size = like.tensor.size;
  Buffer out(DType::kF64, size, contiguous_strides(size));
  for_each_index(size, [&](const Extents& x) { out.set(x, f(x)); });
  return out;
}

// Both may be off by their bounds.
inline void expect_near(const char* what, const Buffer& a, const Buffer& b,
                        const Buffer& a_bound, const Buffer& b_bound) {
  expect_within(what, a, b, filled(a_bound, [&](const Extents& x) {
                  return at(a_bound.tensor, x) + at(b_bound.tensor, x);
                }));
}

inline void expect_near(const char* what, const Buffer& a, const Buffer& b,
                        const Buffer& bound) {
  expect_near(what, a, b, bound, bound);
}

inline void expect_all_near(const Outputs& a, const Outputs& b,
                            const Outputs& a_bound, const Outputs& b_bound) {
  expect_near("o", a.o, b.o, a_bound.o, b_bound.o);
  expect_near("dq", a.dq, b.dq, a_bound.dq, b_bound.dq);
  expect_near("dk", a.dk, b.dk, a_bound.dk, b_bound.dk);
  expect_near("dv", a.dv, b.dv, a_bound.dv, b_bound.dv);
  expect_near("d_bias", a.d_bias, b.d_bias, a_bound.d_bias, b_bound.d_bias);
  expect_near("d_log_decay", a.d_log_decay, b.d_log_decay, a_bound.d_log_decay,
              b_bound.d_log_decay);
}

inline void expect_gradients(const Outputs& got, const Outputs& want,
                             const Outputs& bound) {
  expect_within("dq", got.dq, want.dq, bound.dq);
  expect_within("dk", got.dk, want.dk, bound.dk);
  expect_within("dv", got.dv, want.dv, bound.dv);
  expect_within("d_bias", got.d_bias, want.d_bias, bound.d_bias);
  expect_within("d_log_decay", got.d_log_decay, want.d_log_decay,
                bound.d_log_decay);
  EXPECT_TRUE(got.dq.padding_untouched());
  EXPECT_TRUE(got.dk.padding_untouched());
  EXPECT_TRUE(got.dv.padding_untouched());
  EXPECT_TRUE(got.d_bias.padding_untouched());
  EXPECT_TRUE(got.d_log_decay.padding_untouched());
}

inline void expect_all_within(const Outputs& got, const Outputs& want,
                              const Outputs& bound) {
  expect_within("o", got.o, want.o, bound.o);
  EXPECT_TRUE(got.o.padding_untouched());
  expect_gradients(got, want, bound);
  expect_rows_within(got, want, bound);
}

inline bool same_bits(const Buffer& a, const Buffer& b) {
  return a.bytes == b.bytes;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() ||
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

inline void expect_same_gradients(const Outputs& a, const Outputs& b) {
  EXPECT_TRUE(same_bits(a.dq, b.dq)) << "dq";
  EXPECT_TRUE(same_bits(a.dk, b.dk)) << "dk";
  EXPECT_TRUE(same_bits(a.dv, b.dv)) << "dv";
  EXPECT_TRUE(same_bits(a.d_bias, b.d_bias)) << "d_bias";
  EXPECT_TRUE(same_bits(a.d_log_decay, b.d_log_decay)) << "d_log_decay";
}

inline void expect_same_bits(const Outputs& a, const Outputs& b) {
  EXPECT_TRUE(same_bits(a.o, b.o)) << "o";
  EXPECT_TRUE(same_bits(a.rows, b.rows)) << "rows";
  EXPECT_TRUE(same_bits(a.stats, b.stats)) << "stats";
  expect_same_gradients(a, b);
}

// Any gradients may be asked for, and those that are come out as in `all`.
inline void expect_every_subset(const Instance& instance, DType storage,
                                const Outputs& all) {
  const Outputs fresh = instance.outputs(storage);
  const int count = all.d_log_decay.bytes.empty() ? 16 : 32;
  for (int wanted = 0; wanted < count; ++wanted) {
    SCOPED_TRACE(wanted);
    SerialParallel serial;
    Outputs out = instance.outputs(storage);
    AttentionGradients gradients = out.gradients();
    if (!(wanted & 1)) gradients.dq.reset();
    if (!(wanted & 2)) gradients.dk.reset();
    if (!(wanted & 4)) gradients.dv.reset();
    if (!(wanted & 8)) gradients.d_bias.reset();
    if (!(wanted & 16)) gradients.d_log_decay.reset();
    run_backward(instance, all, gradients, serial);
    EXPECT_EQ(out.dq.bytes, (wanted & 1 ? all : fresh).dq.bytes);
    EXPECT_EQ(out.dk.bytes, (wanted & 2 ? all : fresh).dk.bytes);
    EXPECT_EQ(out.dv.bytes, (wanted & 4 ? all : fresh).dv.bytes);
    EXPECT_EQ(out.d_bias.bytes, (wanted & 8 ? all : fresh).d_bias.bytes);
    EXPECT_EQ(out.d_log_decay.bytes,
              (wanted & 16 ? all : fresh).d_log_decay.bytes);
  }
}

// Threads do not change a bit of what run(parallel) gives.
template <typename Run>
void expect_same_on_threads(const Outputs& want, const Run& run) {
  for (const int workers : {1, 2, 3, 7}) {
    for (const auto order : {TaskOrder::kAscending, TaskOrder::kShuffled}) {
      SCOPED_TRACE(std::to_string(workers) + " workers");
      ThreadParallel parallel(workers, order);
      expect_same_bits(run(parallel), want);
    }
  }
  DefaultParallel openmp(2);
  expect_same_bits(run(openmp), want);
}

}  // namespace polyattn::test
