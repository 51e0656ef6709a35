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

std::string sgemm_library() {
  // The configuration reads "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
  const std::string text = openblas_get_config();
  const std::size_t name = text.find(' ');
  const std::size_t version =
      name == std::string::npos ? name : text.find(' ', name + 1);
  return text.substr(0, version) + ", " + openblas_get_corename();
}

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
std::string sgemm_library() { return ""; }
void set_sgemm_threads(int) {}
void sgemm(const Matrix&, const Matrix&, float*, float) {
  throw std::logic_error("[sgemm] built without OpenBLAS");
}

#endif

std::string sgemm_caution(const std::string& library,
                          const std::string& target) {
  if (!library.ends_with(", Prescott") || !target.starts_with("avx")) return "";
  const std::string core = target == "avx2" ? "Haswell" : "SkylakeX";
  return "note: OpenBLAS does not know this processor and took its slowest "
         "kernels, so ratios to\n      sgemm and speed-ups mean little: run "
         "again with OPENBLAS_CORETYPE=" +
         core + "\n";
}

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
  const double seconds = seconds_of([&] { sgemm(a, b, c_.data()); }, 1);
  const auto n = static_cast<double>(size_);
  return 2e-9 * n * n * n / seconds;
}

}  // namespace polyattn::bench
