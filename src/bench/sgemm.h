// OpenBLAS, or its absence, behind one door.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyattn::bench {

bool have_sgemm();

// "OpenBLAS 0.3.21, Zen"; empty without OpenBLAS.
std::string sgemm_library();

// Threads of the following sgemm calls.
void set_sgemm_threads(int threads);

// c[rows, columns] = alpha a b, row-major with these leading dimensions; a is
// [rows, inner], or [inner, rows] if transpose_a; b is [inner, columns], or
// [columns, inner] if transpose_b.
struct Sgemm {
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t rows = 0, columns = 0, inner = 0;
  float alpha = 1;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
};
void sgemm(const Sgemm& call);

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
