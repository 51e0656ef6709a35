// ShortConv against torch's convolutions with a group for each channel, in f64
// and, where it has a kernel of its own, in f32.
#include "polyattn/nn/short_conv.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "nn/plain_conv.h"
#include "nn/support.h"

namespace polyattn::nn {
namespace short_conv_test {

using test::expect_error;

std::vector<ShortConvOptions> kinds() {
  // More channels than one task has, and no multiple of anything.
  return {ShortConvOptions(37, 4), ShortConvOptions(5, 1),
          ShortConvOptions(37, 3).grid(Grid{2, 5}),
          ShortConvOptions(5, 3).grid(Grid{1, 11})};
}

ShortConv make(const ShortConvOptions& options) {
  ShortConv conv(options);
  const torch::NoGradGuard no_grad;
  conv->weight.normal_();
  return conv;
}

// y, its gradients by rows and weight, and those of the gradients' length.
std::vector<torch::Tensor> results(const torch::Tensor& y,
                                   const torch::Tensor& rows,
                                   const torch::Tensor& weight) {
  const auto first = torch::autograd::grad({y.pow(3).sum()}, {rows, weight}, {},
                                           true, /*create_graph=*/true);
  const auto length = first[0].square().sum() + first[1].square().sum();
  const auto second = torch::autograd::grad({length}, {rows, weight});
  return {y, first[0], first[1], second[0], second[1]};
}

TEST(ShortConv, IsTorchsConvolution) {
  torch::manual_seed(1);
  for (const auto& options : kinds()) {
    ShortConv conv = make(options);
    const auto rows = torch::randn({3, 12, options.channels()});
    const auto wide_rows = rows.to(torch::kDouble).requires_grad_();
    const auto wide_weight =
        conv->weight.detach().to(torch::kDouble).requires_grad_();
    const auto expected =
        results(test::plain_conv(wide_rows, wide_weight, options.grid()),
                wide_rows, wide_weight);
    const auto narrow_rows = rows.clone().requires_grad_();
    const auto actual =
        results(conv->forward(narrow_rows), narrow_rows, conv->weight);
    conv->forward(narrow_rows).pow(3).sum().backward();
    // Sums of up to 3 * 12 products of numbers that cancel little, in three
    // layers of derivatives: 2^-24 times some hundreds.
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LE(test::relative_error(actual[i], expected[i]), 2e-5) << i;
    EXPECT_LE(test::relative_error(narrow_rows.grad(), expected[1]), 2e-5);
    EXPECT_LE(test::relative_error(conv->weight.grad(), expected[2]), 2e-5);
    conv->to(torch::kDouble);
    const auto wide =
        results(conv->forward(wide_rows), wide_rows, conv->weight);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_SAME(wide[i], expected[i]);
  }
}

TEST(ShortConv, BeginsAsTheIdentity) {
  for (const auto& options : kinds()) {
    ShortConv conv(options);
    const auto rows = torch::randn({2, 12, options.channels()});
    EXPECT_TRUE(conv->forward(rows).equal(rows));
  }
}

TEST(ShortConv, ThreadsDoNotMatter) {
  torch::manual_seed(2);
  ShortConv conv = make(ShortConvOptions(70, 4));
  const auto rows = torch::randn({3, 50, 70}).requires_grad_();
  const auto gradients = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const auto y = conv->forward(rows);
    auto all = torch::autograd::grad({y.square().sum()}, {rows, conv->weight});
    all.push_back(y);
    at::set_num_threads(before);
    return all;
  };
  const auto one = gradients(1), three = gradients(3);
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_TRUE(one[i].equal(three[i])) << i;
}

TEST(ShortConv, AcceptsEmptySizes) {
  ShortConv conv = make(ShortConvOptions(5, 4));
  for (const auto& size : {std::vector<std::int64_t>{0, 3, 5},
                           std::vector<std::int64_t>{2, 0, 5}}) {
    EXPECT_EQ(conv->forward(torch::randn(size)).sizes(), size);
    EXPECT_EQ(conv->forward(torch::randn(size, torch::kHalf)).sizes(), size);
  }
}

TEST(ShortConv, Refuses) {
  expect_error([] { ShortConv(ShortConvOptions(0, 4)); },
               "[ShortConv] channels 0 < 1");
  expect_error([] { ShortConv(ShortConvOptions(4, 0)); },
               "[ShortConv] width 0 < 1");
  expect_error(
      [] {
        ShortConv(ShortConvOptions(4, 5).grid(Grid{2, 2}));
      },
      "[ShortConv] width 5 is not 3, which it is on a grid");
  ShortConv conv(ShortConvOptions(4, 3));
  ShortConv grid(ShortConvOptions(4, 3).grid(Grid{2, 2}));
  const auto rows = torch::randn({2, 3, 4});
  torch::Tensor tail;
  expect_error([&] { conv->forward(rows.narrow(2, 0, 3)); },
               "[ShortConv] rows of size [2, 3, 3] are not [B, N, 4]");
  expect_error([&] { grid->forward(rows); },
               "[ShortConv] 3 rows are fewer than the 4 patches of the grid");
  expect_error([&] { grid->forward(rows, tail); },
               "[ShortConv] patches of a grid have no order");
  conv->forward(rows, tail);
  expect_error([&] { conv->forward(rows.narrow(0, 0, 1), tail); },
               "[ShortConv] rows of size [1, 3, 4] do not follow on a tail of "
               "size [2, 2, 4]");
}

}  // namespace short_conv_test
}  // namespace polyattn::nn
