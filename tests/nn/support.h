// What the tests of modules and models have in common.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>

namespace polyattn::test {

// Modules are compared in f64. What is added up has at most some thousand terms
// of about the same size, and passes through a few layers: 2^-53 times 10^4.
inline constexpr double kRounding = 1e-12;

// The largest difference, relative to the largest element of `expected`.
inline double relative_error(const torch::Tensor& actual,
                             const torch::Tensor& expected) {
  EXPECT_EQ(actual.sizes(), expected.sizes());
  if (actual.sizes() != expected.sizes()) return 1;
  const auto wanted = expected.detach().to(torch::kDouble);
  const auto difference = actual.detach().to(torch::kDouble) - wanted;
  return difference.abs().max().item<double>() /
         wanted.abs().max().item<double>();
}

// NaN fails too.
#define EXPECT_SAME(actual, expected)                           \
  EXPECT_LE(::polyattn::test::relative_error(actual, expected), \
            ::polyattn::test::kRounding)

inline void expect_error(const std::function<void()>& call,
                         const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "no error: " << message;
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what_without_backtrace(), message.c_str());
  }
}

// Every parameter has a gradient that is not zero.
inline void expect_gradients(const torch::nn::Module& module) {
  for (const auto& item : module.named_parameters()) {
    SCOPED_TRACE(item.key());
    ASSERT_TRUE(item.value().grad().defined());
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0);
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>());
  }
}

inline torch::Tensor random_rows(torch::IntArrayRef size) {
  return torch::randn(size, torch::kDouble);
}

}  // namespace polyattn::test
