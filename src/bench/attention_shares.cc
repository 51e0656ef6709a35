#include "bench/attention_shares.h"

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>

#include "polyattn/nn/xca_block.h"
#include "polyattn/torch/attention.h"

namespace polyattn::bench {
namespace {

// The blocks of XCiT-S12 on images of 224 pixels in patches of 16.
constexpr std::int64_t kImages = 8, kSide = 14, kDim = 384, kHeads = 8;

// Forward and backward; the gradients are thrown away.
template <class Forward>
void run(const Forward& forward, const torch::Tensor& x) {
  forward().sum().backward();
  x.mutable_grad().reset();
}

}  // namespace

Comparison channels_comparison(const std::string& activation) {
  Comparison comparison;
  comparison.name =
      fmt::format("attention over channels, {} images, N = {}, C = {}, {}",
                  kImages, kSide * kSide, kDim, activation);
  comparison.baseline_name = "the block of XCiT around it";
  comparison.goal = 1 / 0.15;
  comparison.effort = 2;
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    torch::manual_seed(seed);
    nn::XcaBlockOptions options(kDim, kHeads);
    options.attention().activation(activation);
    nn::XcaBlock block(options);
    const auto rows =
        torch::randn({kImages, kSide * kSide, kDim}, torch::requires_grad());
    // Channels are rows, of unit norm, as the block makes them.
    torch::Tensor channels =
        torch::randn({3, kImages, kHeads, kDim / kHeads, kSide * kSide});
    channels = (channels / channels.norm(2, -1, true)).requires_grad_();
    const auto attend = [=] {
      return attention(channels[0], channels[1], channels[2],
                       AttentionOptions().activation(activation).scale(1.0));
    };
    return {[=] { run(attend, channels); },
            [=]() mutable {
              run([&] { return block->forward(rows, {kSide, kSide}); }, rows);
              block->zero_grad();
            }};
  };
  return comparison;
}

Comparison dropout_comparison(const std::string& activation) {
  Comparison comparison;
  comparison.name = fmt::format(
      "attention with dropout of 0.1, [1, 12, 1024, 64], {}", activation);
  comparison.baseline_name = "without";
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    torch::manual_seed(seed);
    const auto heads =
        torch::randn({3, 1, 12, 1024, 64}, torch::requires_grad());
    const auto attend = [=](double rate) {
      return attention(heads[0], heads[1], heads[2],
                       AttentionOptions().activation(activation).dropout(rate));
    };
    return {[=] { run([&] { return attend(0.1); }, heads); },
            [=] { run([&] { return attend(0); }, heads); }};
  };
  return comparison;
}

}  // namespace polyattn::bench
