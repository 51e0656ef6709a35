// What an expression is evaluated in: a tensor, or a number where no tensor is
// needed yet. The powers and products of tensors with numbers have derivatives
// that are finite where those of tensors with tensors are not.
#pragma once

#include <torch/types.h>

#include <cmath>
#include <utility>

namespace polyattn::train {

class Quantity {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Quantity(double number) : number_(number) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Quantity(torch::Tensor tensor) : tensor_(std::move(tensor)) {}

  bool is_number() const { return !tensor_.defined(); }
  double number() const { return number_; }
  const torch::Tensor& tensor() const { return tensor_; }

  // A number in the shape and type of `like`.
  torch::Tensor as(const torch::Tensor& like) const {
    return is_number() ? torch::full_like(like, number_) : tensor_;
  }

 private:
  double number_ = 0;
  torch::Tensor tensor_;
};

// Applies f to what both are.
template <typename F>
Quantity combine(const Quantity& a, const Quantity& b, const F& f) {
  if (a.is_number() && b.is_number()) return f(a.number(), b.number());
  if (a.is_number()) return f(a.number(), b.tensor());
  if (b.is_number()) return f(a.tensor(), b.number());
  return f(a.tensor(), b.tensor());
}

inline Quantity operator+(const Quantity& a, const Quantity& b) {
  return combine(
      a, b, [](const auto& x, const auto& y) -> Quantity { return x + y; });
}
inline Quantity operator-(const Quantity& a, const Quantity& b) {
  return combine(
      a, b, [](const auto& x, const auto& y) -> Quantity { return x - y; });
}
inline Quantity operator*(const Quantity& a, const Quantity& b) {
  return combine(
      a, b, [](const auto& x, const auto& y) -> Quantity { return x * y; });
}
inline Quantity operator/(const Quantity& a, const Quantity& b) {
  return combine(
      a, b, [](const auto& x, const auto& y) -> Quantity { return x / y; });
}
inline Quantity pow(const Quantity& a, const Quantity& b) {
  return combine(a, b, [](const auto& x, const auto& y) -> Quantity {
    using std::pow;
    using torch::pow;
    return pow(x, y);
  });
}
inline Quantity operator-(const Quantity& a) {
  return a.is_number() ? Quantity(-a.number()) : Quantity(-a.tensor());
}

template <typename Number, typename Tensor>
Quantity map(const Quantity& a, const Number& number, const Tensor& tensor) {
  return a.is_number() ? Quantity(number(a.number()))
                       : Quantity(tensor(a.tensor()));
}

#define POLYATTN_FUNCTION(name)                                 \
  inline Quantity name(const Quantity& a) {                     \
    return map(                                                 \
        a, [](double x) { return std::name(x); },               \
        [](const torch::Tensor& x) { return torch::name(x); }); \
  }
POLYATTN_FUNCTION(sin)
POLYATTN_FUNCTION(cos)
POLYATTN_FUNCTION(tan)
POLYATTN_FUNCTION(sinh)
POLYATTN_FUNCTION(cosh)
POLYATTN_FUNCTION(tanh)
POLYATTN_FUNCTION(exp)
POLYATTN_FUNCTION(log)
POLYATTN_FUNCTION(sqrt)
#undef POLYATTN_FUNCTION

}  // namespace polyattn::train
