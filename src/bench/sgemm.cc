#include "bench/sgemm.h"

#include <stdexcept>

#include "base/random.h"
#include "bench/timed.h"

#ifdef POLYATTN_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace polyattn::bench {

#ifdef POLYATTN_HAVE_OPENBLAS

bool have_sgemm() { return true; }

void set_sgemm_threads(int threads) { openblas_set_num_threads(threads); }

void sgemm(const Matrix& a, const Matrix& b, float* c, float alpha) {
  const auto rows = static_cast<blasint>(a.transposed ? a.columns : a.rows);
  const auto inner = static_cast<blasint>(a.transposed ? a.rows : a.columns);
  const auto columns = static_cast<blasint>(b.transposed ? b.rows : b.columns);
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, rows, columns, inner,
              alpha, a.data, static_cast<blasint>(a.columns), b.data,
              static_cast<blasint>(b.columns), 0.0F, c, columns);
}

#else

bool have_sgemm() { return false; }
void set_sgemm_threads(int) {}
void sgemm(const Matrix&, const Matrix&, float*, float) {
  throw std::logic_error("[sgemm] built without OpenBLAS");
}

#endif

Matrix transpose(Matrix matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

SgemmYardstick::SgemmYardstick(std::int64_t size, std::uint64_t seed)
    : size_(size), a_(size * size), b_(size * size), c_(size * size) {
  base::Random random(seed);
  for (float& value : a_) value = static_cast<float>(random.normal());
  for (float& value : b_) value = static_cast<float>(random.normal());
}

double SgemmYardstick::gflops(int threads) {
  set_sgemm_threads(threads);
  const Matrix a{a_.data(), size_, size_}, b{b_.data(), size_, size_};
  const double seconds =
      seconds_of([&] { sgemm(a, b, c_.data()); }, 1, clock_for(threads));
  const auto n = static_cast<double>(size_);
  return 2e-9 * n * n * n / seconds;
}

}  // namespace polyattn::bench
