// Materialised attention: matmul, activation, matmul, with OpenBLAS and the
// whole N x M matrix in memory. Forward writes the scores of a head, turns them
// into weights in place and multiplies. Backward finds scores and weights of
// all heads as forward left them, as autograd does, so it has four products
// where ours has five.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/inputs.h"
#include "polyattn/parallel.h"

namespace polyattn::bench {

class Materialised {
 public:
  // Whether it can do this case: f32, no statistics, dense, an
  // activation that it knows, a matrix that fits in memory, one key head per
  // query head in backward; and OpenBLAS.
  static bool can_do(const BenchCase& c);

  // Uses the inputs of the runner, which must outlive it.
  explicit Materialised(const CaseRunner& runner);

  // The operation, once.
  void run();

  ConstTensor o() const { return o_.tensor(); }
  ConstTensor dq() const { return dq_.tensor(); }
  ConstTensor dk() const { return dk_.tensor(); }
  ConstTensor dv() const { return dv_.tensor(); }

 private:
  // The operands of one head, at their first row.
  struct Head {
    const float *q, *k, *v;
    std::int64_t index;  // of B x H
  };
  Head head(std::int64_t index) const;

  // Runs body(head index, worker): heads side by side where there are enough
  // of them, otherwise one after the other with parallel products.
  template <typename Body>
  void for_heads(const Body& body);
  // Runs body(row) for the rows of one head.
  template <typename Body>
  void for_rows(const Body& body);

  std::int64_t seen(std::int64_t row) const;
  void compute_scores(const Head& head, float* scores) const;
  void forward(const Head& head, float* scores);
  void backward(const Head& head, float* gradient);

  const CaseRunner* runner_;
  BenchCase case_;
  float scale_;
  bool heads_in_parallel_;
  DefaultParallel parallel_;
  Array o_, dq_, dk_, dv_;
  std::vector<float> scratch_;           // [workers, N, M]
  std::vector<float> scores_, weights_;  // [B, H, N, M], backward only
};

}  // namespace polyattn::bench
