// What calls that own their workspace do with memory: they do not clear it, and
// keep it for the next one if it is not large.
#include "core/workspace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "core/kernel_cases.h"
#include "core/random_inputs.h"
#include "polyattn/decode.h"

namespace {

constexpr std::size_t kHeader = 64;
constexpr int kMark = 0x5a;

std::atomic<std::int64_t> live_bytes = 0;
std::atomic<std::size_t> watched = 0;  // blocks of this size are looked at
std::atomic<int> cleared = 0;          // of these, whose last byte was written
std::atomic<int> left_alone = 0;

}  // namespace

// Every block knows its size, and is full of marks.
void* operator new(std::size_t size) {
  auto* block = static_cast<std::byte*>(std::malloc(kHeader + size));
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &size, sizeof(size));
  std::memset(block + kHeader, kMark, size);
  live_bytes += static_cast<std::int64_t>(size);
  return block + kHeader;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  std::byte* block = static_cast<std::byte*>(memory) - kHeader;
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof(size));
  if (size > 0 && size == watched)
    ++(block[kHeader + size - 1] == std::byte{kMark} ? left_alone : cleared);
  live_bytes -= static_cast<std::int64_t>(size);
  std::free(block);
}

void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

// The standard library's would come here by themselves, a sanitizer's would
// not.
void* operator new[](std::size_t size) { return operator new(size); }

void operator delete[](void* memory) noexcept { operator delete(memory); }

void operator delete[](void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace polyattn {
namespace {

using test::Case;
using test::Instance;
using test::Outputs;

// The last byte of a workspace is there for its alignment alone. A thread that
// ends frees what it kept.
TEST(Workspace, IsNotCleared) {
  for (const Path path : {Path::kDense, Path::kLinear}) {
    const Instance instance(Case{
        .n = 300, .m = 300, .d = 8, .e = 8, .formula = "x^2/N", .path = path});
    const AttentionInputs in = instance.inputs();
    const AttentionConfig config = instance.config();
    SerialParallel serial;
    Outputs out = instance.outputs(DType::kF32);
    cleared = left_alone = 0;
    watched = attention_forward_workspace(in, config, serial.workers());
    std::thread([&] {
      attention_forward(in, config, {out.o.tensor, out.rows, {}}, serial);
    }).join();
    watched = attention_backward_workspace(in, config, serial.workers());
    std::thread([&] {
      attention_backward(in, config, out.backward_inputs(instance.d_o.tensor),
                         out.gradients(), serial);
    }).join();
    watched = 0;
    EXPECT_EQ(left_alone, 2);
    EXPECT_EQ(cleared, 0);
  }
}

TEST(Workspace, IsKeptForTheNextCallUnlessItIsLarge) {
  constexpr std::size_t kMegabyte = 1 << 20;
  const auto kept_after = [](std::size_t bytes) {
    { const Workspace workspace(bytes); }
    return live_bytes.load();
  };
  std::thread([&] {
    const std::int64_t before = live_bytes;
    EXPECT_EQ(kept_after(kMegabyte) - before, kMegabyte);
    EXPECT_EQ(kept_after(2 * kMegabyte) - before, 2 * kMegabyte);
    // A smaller one is the same memory, and two at a time are two.
    const Workspace first(kMegabyte);
    EXPECT_EQ(first.span().size(), 2 * kMegabyte);
    const Workspace second(kMegabyte);
    EXPECT_NE(first.span().data(), second.span().data());
  }).join();
  std::thread([&] {
    const std::int64_t before = live_bytes;
    EXPECT_EQ(kept_after(100 * kMegabyte) - before, 0);
  }).join();
}

// A long prefix takes megabytes, which must not stay when the state has gone:
// but for the one workspace of the thread, which goes with it.
TEST(Workspace, NothingStaysBehind) {
  SerialParallel serial;
  const auto decode = [&](std::int64_t tokens, DecodeMode mode) {
    const Instance instance(
        Case{.heads = 4, .n = tokens, .m = tokens, .d = 16, .e = 64});
    Outputs out = instance.outputs(DType::kF32);
    DecodeState state(
        {.heads = 4, .d = 16, .e = 64},
        {.activation = Activation::parse("x^2/sqrt(N)"), .mode = mode});
    state.step({instance.q.tensor, instance.k.tensor, instance.v.tensor},
               out.o.tensor, serial);
  };
  for (const DecodeMode mode : {DecodeMode::kCache, DecodeMode::kSums}) {
    decode(1, mode);
    const std::int64_t before = live_bytes;
    std::thread([&] { decode(5000, mode); }).join();
    EXPECT_EQ(live_bytes - before, 0);
  }
}

// The gradient of a bias takes the memory of the bias, in a few copies if it is
// small; never that of all attention matrices.
TEST(Workspace, HoldsTheGradientOfTheBiasAndNoMore) {
  constexpr std::int64_t kMegabyte = 1 << 20, kFloat = 4;
  float row[16] = {};
  const auto extra = [&](const Extents& shape, const Extents& bias) {
    const auto [batch, heads, n, m] = shape;
    const ConstTensor q = {
        row, DType::kF32, {batch, heads, n, 16}, {0, 0, 0, 1}};
    ConstTensor k = q;
    k.size[2] = m;
    const AttentionInputs in = {
        .q = q,
        .k = k,
        .v = k,
        .bias = ConstTensor{row, DType::kF32, bias, {}}};
    return static_cast<std::int64_t>(
               attention_backward_workspace(in, {}, 2, true)) -
           static_cast<std::int64_t>(attention_backward_workspace(in, {}, 2));
  };
  // [B, H, 4096, 4096] would be four gigabytes.
  const Extents large = {8, 8, 4096, 4096};
  EXPECT_GE(extra(large, {1, 1, 4096, 4096}), 60 * kMegabyte);
  EXPECT_LE(extra(large, {1, 1, 4096, 4096}), (64 + 33) * kMegabyte);
  EXPECT_LE(extra(large, {8, 1, 1, 4096}), 65 * kMegabyte);
  EXPECT_LE(extra(large, {1, 1, 1, 1}), 65 * kMegabyte);
  // Windows of an image that share a bias: [B, H, N, M] would be 118 MB. A
  // strip has at most 32 queries.
  const std::int64_t windows = extra({4096, 3, 49, 49}, {1, 3, 49, 49});
  EXPECT_GE(windows, kFloat * 3 * 49 * 49);
  EXPECT_LE(windows, 22 * kFloat * 3 * 49 * 64 + 64);
}

}  // namespace
}  // namespace polyattn
