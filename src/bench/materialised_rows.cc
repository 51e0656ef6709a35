#include "bench/materialised_rows.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

// The order of these matters.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/materialised_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace polyattn::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// body(tag, j) for whole vectors, then for the rest one by one.
template <typename Body>
HWY_INLINE void for_lanes(std::int64_t count, const Body& body) {
  const Wide wide;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) body(wide, j);
  for (; j < count; ++j) body(One(), j);
}

template <int kDegree, class D, class V>
HWY_INLINE V horner(D d, V x, const float* coefficient) {
  V y = hn::Set(d, coefficient[kDegree]);
  for (int p = kDegree - 1; p >= 0; --p) {
    y = hn::MulAdd(y, x, hn::Set(d, coefficient[p]));
  }
  return y;
}

// Calls body with the degree as a constant, so that Horner's loop unrolls.
template <int kDegree = 0, typename Body>
HWY_INLINE void with_degree(int degree, const Body& body) {
  if constexpr (kDegree < kMaxDegree) {
    if (degree != kDegree) return with_degree<kDegree + 1>(degree, body);
  }
  body(std::integral_constant<int, kDegree>());
}

// out[j] = p(x[j]), times out[j] itself if kMultiply.
template <bool kMultiply>
void polynomial(const float* coefficient, int degree, std::int64_t count,
                const float* x, float* out) {
  with_degree(degree, [&](auto constant) HWY_ATTR {
    for_lanes(count, [&](auto d, std::int64_t j) HWY_ATTR {
      auto y = horner<decltype(constant)::value>(d, hn::LoadU(d, x + j),
                                                 coefficient);
      if constexpr (kMultiply) y = hn::Mul(y, hn::LoadU(d, out + j));
      hn::StoreU(y, d, out + j);
    });
  });
}

void softmax(std::int64_t count, const float* x, float* out) {
  const Wide wide;
  float most = -std::numeric_limits<float>::infinity();
  auto mosts = hn::Set(wide, most);
  for_lanes(count, [&](auto d, std::int64_t j) HWY_ATTR {
    if constexpr (std::is_same_v<decltype(d), Wide>) {
      mosts = hn::Max(mosts, hn::LoadU(d, x + j));
    } else {
      most = std::max(most, x[j]);
    }
  });
  most = std::max(most, hn::GetLane(hn::MaxOfLanes(wide, mosts)));
  float sum = 0;
  auto sums = hn::Zero(wide);
  for_lanes(count, [&](auto d, std::int64_t j) HWY_ATTR {
    const auto y = hn::Exp(d, hn::Sub(hn::LoadU(d, x + j), hn::Set(d, most)));
    hn::StoreU(y, d, out + j);
    if constexpr (std::is_same_v<decltype(d), Wide>) {
      sums = hn::Add(sums, y);
    } else {
      sum += hn::GetLane(y);
    }
  });
  sum += hn::GetLane(hn::SumOfLanes(wide, sums));
  const float factor = 1 / sum;
  for_lanes(count, [&](auto d, std::int64_t j) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, out + j), hn::Set(d, factor)), d, out + j);
  });
}

// gradient = a * (gradient - a . gradient)
void softmax_gradient(std::int64_t count, const float* a, float* gradient) {
  const Wide wide;
  float dot = 0;
  auto dots = hn::Zero(wide);
  for_lanes(count, [&](auto d, std::int64_t j) HWY_ATTR {
    if constexpr (std::is_same_v<decltype(d), Wide>) {
      dots = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, gradient + j), dots);
    } else {
      dot += a[j] * gradient[j];
    }
  });
  dot += hn::GetLane(hn::SumOfLanes(wide, dots));
  for_lanes(count, [&](auto d, std::int64_t j) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, gradient + j), hn::Set(d, dot));
    hn::StoreU(hn::Mul(hn::LoadU(d, a + j), shifted), d, gradient + j);
  });
}

void polynomial_row(const float* coefficient, int degree, std::int64_t count,
                    const float* x, float* out) {
  polynomial<false>(coefficient, degree, count, x, out);
}

void polynomial_gradient_row(const float* coefficient, int degree,
                             std::int64_t count, const float* x, float* out) {
  polynomial<true>(coefficient, degree, count, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace polyattn::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyattn::bench {

HWY_EXPORT(softmax);
HWY_EXPORT(softmax_gradient);
HWY_EXPORT(polynomial_row);
HWY_EXPORT(polynomial_gradient_row);

bool materialised_supports(const Activation& activation) {
  return activation.kind == ActivationKind::kSoftmax ||
         (activation.kind == ActivationKind::kPolynomial &&
          activation.divisor != Divisor::kSum);
}

void materialised_weights(const Activation& activation, std::int64_t seen,
                          std::int64_t keys, const float* scores,
                          float* weights) {
  std::fill(weights + seen, weights + keys, 0.0F);
  if (seen == 0) return;
  if (activation.kind == ActivationKind::kSoftmax) {
    HWY_DYNAMIC_DISPATCH(softmax)(seen, scores, weights);
    return;
  }
  const double scale = activation.row_scale(static_cast<double>(seen));
  std::array<float, kMaxDegree + 1> coefficient{};
  for (int p = 0; p <= activation.degree; ++p) {
    coefficient[p] = static_cast<float>(activation.coefficient[p] * scale);
  }
  HWY_DYNAMIC_DISPATCH(polynomial_row)
  (coefficient.data(), activation.degree, seen, scores, weights);
}

void materialised_score_gradient(const Activation& activation,
                                 std::int64_t seen, std::int64_t keys,
                                 const float* scores, const float* weights,
                                 float* gradient) {
  std::fill(gradient + seen, gradient + keys, 0.0F);
  if (seen == 0) return;
  if (activation.kind == ActivationKind::kSoftmax) {
    HWY_DYNAMIC_DISPATCH(softmax_gradient)(seen, weights, gradient);
    return;
  }
  const double scale = activation.row_scale(static_cast<double>(seen));
  std::array<float, kMaxDegree + 1> derivative{};
  for (int p = 1; p <= activation.degree; ++p) {
    derivative[p - 1] =
        static_cast<float>(p * activation.coefficient[p] * scale);
  }
  HWY_DYNAMIC_DISPATCH(polynomial_gradient_row)
  (derivative.data(), std::max(activation.degree - 1, 0), seen, scores,
   gradient);
}

}  // namespace polyattn::bench
#endif  // HWY_ONCE
