#include "bench/sgemm.h"

#include <chrono>
#include <stdexcept>

#include "base/random.h"

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

void sgemm(const Sgemm& call) {
  cblas_sgemm(
      CblasRowMajor, call.transpose_a ? CblasTrans : CblasNoTrans,
      call.transpose_b ? CblasTrans : CblasNoTrans,
      static_cast<blasint>(call.rows), static_cast<blasint>(call.columns),
      static_cast<blasint>(call.inner), call.alpha, call.a,
      static_cast<blasint>(call.lda), call.b, static_cast<blasint>(call.ldb),
      0.0F, call.c, static_cast<blasint>(call.ldc));
}

#else

bool have_sgemm() { return false; }
std::string sgemm_library() { return ""; }
void set_sgemm_threads(int) {}
void sgemm(const Sgemm&) {
  throw std::logic_error("[sgemm] built without OpenBLAS");
}

#endif

SgemmYardstick::SgemmYardstick(std::int64_t size, std::uint64_t seed)
    : size_(size), a_(size * size), b_(size * size), c_(size * size) {
  base::Random random(seed);
  for (float& value : a_) value = static_cast<float>(random.normal());
  for (float& value : b_) value = static_cast<float>(random.normal());
}

double SgemmYardstick::gflops(int threads) {
  set_sgemm_threads(threads);
  const auto start = std::chrono::steady_clock::now();
  sgemm({.rows = size_,
         .columns = size_,
         .inner = size_,
         .a = a_.data(),
         .lda = size_,
         .b = b_.data(),
         .ldb = size_,
         .c = c_.data(),
         .ldc = size_});
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  const auto n = static_cast<double>(size_);
  return 2e-9 * n * n * n / elapsed.count();
}

}  // namespace polyattn::bench
