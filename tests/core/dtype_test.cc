// Element types: every 16-bit pattern, every rounding boundary between two of
// them, and views.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "polyattn/tensor.h"

namespace polyattn {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr DType kUnknown = static_cast<DType>(9);

struct Half {
  const char* name;
  DType dtype;
  int mantissa_bits, bias;
  float (*to_f32)(std::uint16_t);
  std::uint16_t (*from_f32)(float);

  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(0x7fff >> mantissa_bits << mantissa_bits);
  }
  bool is_nan(std::uint16_t bits) const { return (bits & 0x7fff) > infinity(); }

  // The value by its definition, not by moving bits.
  double value(std::uint16_t bits) const {
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const int scale = 1 << mantissa_bits, fraction = bits & (scale - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if ((bits & 0x7fff) == infinity()) return sign * kInf;
    return sign * std::ldexp(exponent == 0 ? fraction : scale + fraction,
                             std::max(exponent, 1) - bias - mantissa_bits);
  }
};

class HalfTest : public ::testing::TestWithParam<Half> {};

INSTANTIATE_TEST_SUITE_P(Types, HalfTest,
                         ::testing::Values(Half{"f16", DType::kF16, 10, 15,
                                                f16_to_f32, f32_to_f16},
                                           Half{"bf16", DType::kBF16, 7, 127,
                                                bf16_to_f32, f32_to_bf16}),
                         [](const auto& half) { return half.param.name; });

TEST_P(HalfTest, EveryPatternHasItsValueAndComesBack) {
  const Half& h = GetParam();
  for (int pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float wide = h.to_f32(bits);
    if (h.is_nan(bits)) {
      ASSERT_TRUE(std::isnan(wide)) << pattern;
      const int quiet = 1 << (h.mantissa_bits - 1);
      ASSERT_EQ(h.from_f32(wide), pattern | quiet) << pattern;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(wide)),
                std::bit_cast<std::uint64_t>(h.value(bits)))
          << pattern;
      ASSERT_EQ(h.from_f32(wide), bits);
    }
  }
}

// Between each two neighbours: what lies in the middle goes to the even one,
// everything else to the nearer. The f64 values next to the middle are not
// exact in f32, so they also show that storing a double rounds only once.
TEST_P(HalfTest, RoundsToNearestTiesToEven) {
  const Half& h = GetParam();
  for (std::uint16_t low = 0; low < h.infinity(); ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double below = h.value(low);
    // Infinity stands where the next power of two would be.
    const double above =
        high == h.infinity() ? 2 * below - h.value(low - 1) : h.value(high);
    const double middle = (below + above) / 2;
    const std::uint16_t even = low % 2 == 0 ? low : high;
    const auto expect = [&](double value, std::uint16_t bits) {
      for (const int sign : {0, 0x8000}) {
        std::uint16_t stored = 0;
        store_element(&stored, h.dtype, 0, sign == 0 ? value : -value);
        ASSERT_EQ(stored, bits | sign) << low << ' ' << value;
        const auto single = static_cast<float>(value);
        if (static_cast<double>(single) == value) {
          ASSERT_EQ(h.from_f32(sign == 0 ? single : -single), bits | sign);
        }
      }
    };
    expect(middle, even);
    expect(std::nextafter(middle, 0.0), low);
    expect(std::nextafter(middle, 1e300), high);
    expect(std::nextafterf(static_cast<float>(middle), 0.0f), low);
    if (middle < std::numeric_limits<float>::max()) {
      expect(std::nextafterf(static_cast<float>(middle), kInf), high);
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(HalfTest, KeepsNanAndOverflowsToInfinity) {
  const Half& h = GetParam();
  // The payload is only where the short type has no bits.
  const auto nan = std::bit_cast<float>(std::uint32_t{0x7f800001});
  EXPECT_TRUE(h.is_nan(h.from_f32(nan)));
  EXPECT_TRUE(h.is_nan(h.from_f32(-nan)));
  EXPECT_EQ(h.from_f32(kInf), h.infinity());
  EXPECT_EQ(h.from_f32(-kInf), h.infinity() | 0x8000);
  EXPECT_EQ(h.from_f32(std::numeric_limits<float>::max()), h.infinity());
  EXPECT_EQ(h.from_f32(std::numeric_limits<float>::denorm_min()), 0);
  for (const double value : {1e300, 1e39, 1e-50, 5e-324}) {
    std::uint16_t bits = 0;
    store_element(&bits, h.dtype, 0, -value);
    EXPECT_EQ(bits, (value > 1 ? h.infinity() : 0) | 0x8000) << value;
  }
}

TEST(Dtype, StoringADoubleRoundsOnce) {
  // By way of f32 this would be a tie, and go down.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  std::uint16_t bits = 0;
  store_element(&bits, DType::kF16, 0, value);
  EXPECT_EQ(f16_to_f32(bits), 1 + 0x1p-10f);
  EXPECT_EQ(f32_to_f16(static_cast<float>(value)), 0x3c00);
}

TEST(Dtype, LoadsWhatWasStoredAtAnyAlignment) {
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    std::vector<std::byte> bytes(1 + 4 * size_of(t), std::byte{0xff});
    std::byte* data = bytes.data() + 1;
    store_element(data, t, 2, -1.25);
    EXPECT_EQ(load_element(data, t, 2), -1.25);
    EXPECT_TRUE(std::isnan(load_element(data, t, 1)));
    EXPECT_TRUE(std::isnan(load_element(data, t, 3)));
    EXPECT_TRUE(std::isnan(load_element(data, t, 0)));
  }
}

TEST(Dtype, NamesAndSizes) {
  EXPECT_STREQ(name_of(DType::kF32), "f32");
  EXPECT_STREQ(name_of(DType::kBF16), "bf16");
  EXPECT_STREQ(name_of(DType::kF16), "f16");
  EXPECT_STREQ(name_of(DType::kF64), "f64");
  EXPECT_EQ(size_of(DType::kF32), 4u);
  EXPECT_EQ(size_of(DType::kBF16), 2u);
  EXPECT_EQ(size_of(DType::kF16), 2u);
  EXPECT_EQ(size_of(DType::kF64), 8u);
}

TEST(Dtype, RefusesUnknownTypes) {
  double memory = 0;
  EXPECT_THROW(size_of(kUnknown), std::invalid_argument);
  EXPECT_THROW(name_of(kUnknown), std::invalid_argument);
  EXPECT_THROW(load_element(&memory, kUnknown, 0), std::invalid_argument);
  EXPECT_THROW(store_element(&memory, kUnknown, 0, 1), std::invalid_argument);
  EXPECT_EQ(memory, 0);
}

TEST(Dtype, ViewsAreDense) {
  const Extents size = {2, 3, 4, 5};
  EXPECT_EQ(contiguous_strides(size), (Extents{60, 20, 5, 1}));
  EXPECT_EQ(element_count(size), 120);
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(element_count({huge, huge, 0, huge}), 0);

  float f = 0;
  const double d = 0;
  EXPECT_EQ(view(&f, size).data, &f);
  EXPECT_EQ(view(&f, size).dtype, DType::kF32);
  EXPECT_EQ(view(&d, size).dtype, DType::kF64);
  EXPECT_EQ(view(&f, DType::kBF16, size).dtype, DType::kBF16);
  EXPECT_EQ(view(&d, size).stride, contiguous_strides(size));
  const ConstTensor read_only = view(&f, size);
  EXPECT_EQ(read_only.data, &f);
  EXPECT_EQ(read_only.size, size);
}

}  // namespace
}  // namespace polyattn
