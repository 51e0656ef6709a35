// Saved states of decoding: they go on as if nothing had happened, and whatever
// is not one is refused.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decode_cases.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

using Bytes = std::vector<std::byte>;

// Bit by bit, at every length around folds and growth of the cache.
TEST(DecodeFile, GoingOnAfterwardsIsGoingOn) {
  for (const char* formula :
       {"softmax", "x^2/sqrt(N)", "x^4/sum", "x^3/sum", "relu^2/N"}) {
    for (const DecodeMode mode :
         {DecodeMode::kAuto, DecodeMode::kCache, DecodeMode::kSums}) {
      Case c = text_case(formula, 200);
      c.batch = c.heads = c.kv_heads = 2, c.e = 5;
      const bool polynomial =
          formula[0] == 'x' && formula != std::string("x^3/sum");
      if (mode == DecodeMode::kSums && !polynomial) continue;
      for (const Types& types : kTypes) {
        c.dtype = types.dtype, c.compute = types.compute;
        SCOPED_TRACE(::testing::PrintToString(c));
        const Instance instance(c);
        DecodeState state = new_state(c, mode);
        Buffer o = output_of(instance, c.dtype);
        Buffer want = output_of(instance, c.dtype);
        for (const std::int64_t length : {0, 1, 5, 47, 48, 49, 60, 100}) {
          read_pieces(state, instance, state.length(0),
                      {length - state.length(0)}, want);
          const Bytes saved = state.save();
          DecodeState loaded = DecodeState::load(saved), straight = state;
          EXPECT_EQ(loaded.save(), saved);
          EXPECT_EQ(loaded.shape(), state.shape());
          EXPECT_EQ(loaded.length(1), state.length(1));
          EXPECT_EQ(loaded.folded(1), state.folded(1));
          const Numbers rest = {1, 1, 30, 68};
          read_pieces(loaded, instance, length, rest, o);
          read_pieces(straight, instance, length, rest, want);
          EXPECT_EQ(loaded.save(), straight.save());
          for (std::int64_t t = length; t < length + 100; ++t)
            for_each_index({2, 2, 1, 5}, [&](const Extents& x) {
              const Extents at_t = {x[0], x[1], t, x[3]};
              EXPECT_EQ(at(o.tensor, at_t), at(want.tensor, at_t));
            });
        }
      }
    }
  }
}

TEST(DecodeFile, OptionsAndLengthsComeBack) {
  Case c = text_case("(1 + x/3)^2/N", 60);
  c.batch = 3, c.scale = 0.1 + 0.2;
  const Instance instance(c);
  DecodeOptions options = options_of(c, DecodeMode::kSums);
  options.storage = DType::kF16, options.compute = DType::kF64;
  DecodeState state(shape_of(c), options);
  Buffer o = output_of(instance, c.dtype);
  const Numbers counts = {60, 0, 3};
  DecodeInputs in = inputs_of(instance, 0, 60);
  in.counts = counts;
  SerialParallel serial;
  state.step(in, o.tensor, serial);
  const DecodeState loaded = DecodeState::load(state.save());
  EXPECT_EQ(loaded.options().activation, options.activation);
  EXPECT_EQ(loaded.options().scale, options.scale);
  EXPECT_EQ(loaded.options().mode, options.mode);
  EXPECT_EQ(loaded.options().compute, options.compute);
  EXPECT_EQ(loaded.options().storage, options.storage);
  for (std::int64_t b = 0; b < 3; ++b)
    EXPECT_EQ(loaded.length(b), counts[static_cast<std::size_t>(b)]);
  EXPECT_EQ(loaded.folded(0), 48);
}

// A small state of two members: one with sums and a cache, one empty.
Bytes small_save(const std::string& formula = "x/N",
                 DecodeMode mode = DecodeMode::kSums) {
  Case c = text_case(formula, 50);
  c.batch = 2, c.d = 2, c.e = 1;
  const Instance instance(c);
  DecodeState state = new_state(c, mode);
  Buffer o = output_of(instance, c.dtype);
  const Numbers counts = {50, 0};
  DecodeInputs in = inputs_of(instance, 0, 50);
  in.counts = counts;
  SerialParallel serial;
  state.step(in, o.tensor, serial);
  return state.save();
}

// The checksum of what stands before it, as the file has it: FNV-1a.
Bytes sealed(Bytes bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  bytes.resize(bytes.size() - 8);
  for (const std::byte b : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<std::byte>(hash >> (8 * i) & 0xff));
  return bytes;
}

template <typename T>
Bytes with_number(Bytes bytes, std::size_t at, T value) {
  static_assert(sizeof(T) == 8);
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return sealed(std::move(bytes));
}

// A copy that ends where its memory does, for the sanitizers.
DecodeState load(const Bytes& bytes) {
  const Bytes exact(bytes.begin(), bytes.end());
  return DecodeState::load(exact);
}

void expect_refused(const Bytes& bytes, const std::string& why) {
  const std::string message = message_of<std::invalid_argument>(
      [&] { static_cast<void>(load(bytes)); });
  EXPECT_TRUE(contains(message, why)) << message << "\nwithout: " << why;
}

// Refused, or a state that can be used: two folds more of it.
void expect_refused_or_usable(const Bytes& bytes) {
  try {
    DecodeState state = load(bytes);
    EXPECT_EQ(DecodeState::load(state.save()).save(), state.save());
    const DecodeShape& s = state.shape();
    if (s.batch * s.heads * (s.d + s.e) > 1000) return;
    Case c;
    c.batch = s.batch, c.heads = s.heads, c.kv_heads = s.kv_heads;
    c.d = s.d, c.e = s.e, c.n = c.m = 100;
    const Instance instance(c);
    Buffer o = output_of(instance, c.dtype);
    read_pieces(state, instance, 0, {1, 99}, o);
  } catch (const std::invalid_argument&) {
  } catch (const std::overflow_error&) {
  }
}

TEST(DecodeFile, TheSealOfTheTestIsThatOfTheFile) {
  const Bytes saved = small_save();
  EXPECT_EQ(sealed(saved), saved);
  EXPECT_NO_THROW(load(saved));
}

TEST(DecodeFile, EveryChangedByteIsRefused) {
  const Bytes saved = small_save();
  for (std::size_t i = 0; i < saved.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes spoilt = saved;
      spoilt[i] ^= static_cast<std::byte>(1 << bit);
      EXPECT_THROW(load(spoilt), std::invalid_argument) << i << ' ' << bit;
    }
  }
}

TEST(DecodeFile, EveryChangedByteWithARightChecksumIsRefusedOrUsable) {
  for (const auto& [formula, mode] :
       {std::pair{"x/N", DecodeMode::kSums},
        std::pair{"-x^2/sum", DecodeMode::kAuto},
        std::pair{"softmax", DecodeMode::kCache}}) {
    const Bytes saved = small_save(formula, mode);
    for (std::size_t i = 0; i < saved.size() - 8; ++i) {
      for (const int change : {1, 2, 0x10, 0x40, 0x7f, 0x80, 0xff}) {
        SCOPED_TRACE(std::to_string(i) + " ^ " + std::to_string(change));
        Bytes spoilt = saved;
        spoilt[i] ^= static_cast<std::byte>(change);
        expect_refused_or_usable(sealed(spoilt));
      }
    }
  }
}

TEST(DecodeFile, EveryTruncationIsRefused) {
  const Bytes saved = small_save();
  for (std::size_t size = 0; size < saved.size(); ++size) {
    const Bytes part(saved.begin(),
                     saved.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(load(part), std::invalid_argument) << size;
    if (size >= 8) {
      EXPECT_THROW(load(sealed(part)), std::invalid_argument) << size;
    }
  }
}

TEST(DecodeFile, AppendedBytesAreRefused) {
  const Bytes saved = small_save();
  for (const std::size_t more : {1, 7, 8, 24, 1000}) {
    for (const int fill : {0, 1, 255}) {
      Bytes longer = saved;
      longer.resize(saved.size() + more, static_cast<std::byte>(fill));
      EXPECT_THROW(load(longer), std::invalid_argument) << more;
      EXPECT_THROW(load(sealed(longer)), std::invalid_argument) << more;
    }
  }
}

// Where the numbers of small_save() stand. The text is "x/N".
constexpr std::size_t kBatch = 8, kHeads = 16, kKeyHeads = 24, kWidth = 32,
                      kValueWidth = 40, kTextLength = 48, kText = 56,
                      kScale = kText + 3, kMode = kScale + 8,
                      kCompute = kMode + 8, kStorage = kCompute + 8,
                      kLength = kStorage + 8, kCached = kLength + 8,
                      kSumBytes = kCached + 16 + 2 * 3 * 4,
                      kSecond = kSumBytes + 8 + 2 * 16 * 4;

TEST(DecodeFile, TheNumbersStandWhereTheTestsThink) {
  const Bytes saved = small_save();
  const auto number = [&](std::size_t at) {
    std::int64_t value = 0;
    std::memcpy(&value, saved.data() + at, 8);
    return value;
  };
  EXPECT_EQ(number(kBatch), 2);
  EXPECT_EQ(number(kWidth), 2);
  EXPECT_EQ(number(kTextLength), 3);
  EXPECT_EQ(number(kMode), static_cast<std::int64_t>(DecodeMode::kSums));
  EXPECT_EQ(number(kLength), 50);
  EXPECT_EQ(number(kCached), 2);
  EXPECT_EQ(number(kSumBytes), 2 * 16 * 4);
  EXPECT_EQ(number(kSecond), 0);
  EXPECT_EQ(saved.size(), kSecond + 32 + 8);
}

TEST(DecodeFile, HostileNumbersAreRefusedOrUsable) {
  const Bytes saved = small_save();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t at :
       {std::size_t{0}, kBatch, kHeads, kKeyHeads, kWidth, kValueWidth,
        kTextLength, kMode, kCompute, kStorage, kLength, kCached, kSumBytes,
        kSecond, kSecond + 8, kSecond + 16}) {
    for (const std::int64_t value :
         {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{3},
          std::int64_t{47}, std::int64_t{48}, std::int64_t{1} << 24,
          std::int64_t{1} << 32, std::int64_t{1} << 53, std::int64_t{1} << 61,
          std::int64_t{1} << 62, kMost / 24, kMost - 1, kMost, -kMost - 1}) {
      SCOPED_TRACE(std::to_string(at) + " = " + std::to_string(value));
      expect_refused_or_usable(with_number(saved, at, value));
    }
  }
}

TEST(DecodeFile, ErrorsSayWhatIsWrong) {
  const Bytes saved = small_save();
  const auto refused = [&](std::size_t at, std::int64_t value,
                           const std::string& why) {
    SCOPED_TRACE(std::to_string(at) + " = " + std::to_string(value));
    expect_refused(with_number(saved, at, value), why);
  };
  expect_refused({}, "too short");
  Bytes spoilt = saved;
  spoilt.back() ^= std::byte{1};
  expect_refused(spoilt, "damaged or incomplete");
  refused(0, 1, "another version");
  refused(kBatch, 0, "a batch of 0");
  refused(kBatch, std::int64_t{1} << 40, "a batch of 1099511627776");
  refused(kHeads, 0, "a size of 0");
  refused(kKeyHeads, 2, "not a multiple");
  refused(kTextLength, -1, "ends early");
  refused(kMode, 3, "a choice of 3");
  refused(kCompute, 1, "neither f32 nor f64");
  refused(kStorage, -1, "a choice of -1");
  refused(kLength, 1, "2 of 1 tokens");
  refused(kLength, std::numeric_limits<std::int64_t>::max(), "tokens");
  refused(kCached, std::int64_t{1} << 40, "of 50 tokens");
  refused(kCached, 40, "ends early");
  refused(kSumBytes, 124, "124 bytes");
  refused(kSumBytes, 0, "neither cached nor in sums");
  refused(kSecond, 7, "neither cached nor in sums");
  expect_refused(with_number(saved, kScale, std::nan("")), "not finite");
  Bytes formula = saved;
  formula[kText] = std::byte{'?'};
  EXPECT_THROW(load(sealed(formula)), FormulaError);
}

// A cache that should have been folded long ago.
TEST(DecodeFile, MoreCachedTokensThanAFoldAreRefused) {
  const Bytes cache = small_save("x/N", DecodeMode::kCache);
  expect_refused(
      with_number(cache, kMode, static_cast<std::int64_t>(DecodeMode::kSums)),
      "50 cached tokens are too many");
}

// Sums belong to a mode that has them.
TEST(DecodeFile, SumsInACacheAreRefused) {
  expect_refused(with_number(small_save(), kMode,
                             static_cast<std::int64_t>(DecodeMode::kCache)),
                 "its sums take 128 bytes");
}

}  // namespace
}  // namespace polyattn::test
