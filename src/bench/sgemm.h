// OpenBLAS, or its absence, behind one door.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyattn::bench {

bool have_sgemm();

// Threads of the following sgemm calls.
void set_sgemm_threads(int threads);

// Row-major and dense, as it lies in memory.
struct Matrix {
  const float* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  bool transposed = false;  // what is multiplied is its transpose
};
Matrix transpose(Matrix matrix);

// c = alpha a b, dense.
void sgemm(const Matrix& a, const Matrix& b, float* c, float alpha = 1);

// The yardstick: a product of two size x size matrices of normal numbers.
class SgemmYardstick {
 public:
  SgemmYardstick(std::int64_t size, std::uint64_t seed);

  // Gflop/s of one product.
  double gflops(int threads);

 private:
  std::int64_t size_;
  std::vector<float> a_, b_, c_;
};

}  // namespace polyattn::bench
