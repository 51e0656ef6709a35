// The state of decoding as a value: batches, beams, forks, sizes, and what it
// refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/decode_cases.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

// A text in a cache, and one in sums.
const std::pair<const char*, DecodeMode> kKinds[] = {
    {"softmax", DecodeMode::kAuto},
    {"x^2/sqrt(N)", DecodeMode::kCache},
    {"x^2/sqrt(N)", DecodeMode::kSums},
    {"x^4/sum", DecodeMode::kSums}};

Case batch_case(const std::string& formula, std::int64_t batch) {
  Case c = text_case(formula, 160);
  c.batch = batch, c.heads = 2, c.e = 3;
  return c;
}

std::vector<std::byte> saved_member(DecodeState state, std::int64_t member) {
  state.select(Numbers{member});
  return state.save();
}

// A member of an instance, as a text of its own.
Buffer member_of(const Buffer& all, std::int64_t member) {
  Extents size = all.tensor.size;
  size[0] = 1;
  Buffer one(all.tensor.dtype, size, contiguous_strides(size));
  for_each_index(size, [&](const Extents& x) {
    one.set(x, at(all.tensor, {member, x[1], x[2], x[3]}));
  });
  return one;
}

// Members that read at different speeds: tokens of member b are taken from the
// same place of the instance, so that the text of b has gaps; a text alone
// reads the same.
TEST(DecodeBatch, MembersOfDifferentLengthsAreTextsOfTheirOwn) {
  constexpr std::int64_t kStep = 4;
  for (const auto& [formula, mode] : kKinds) {
    SCOPED_TRACE(formula);
    const Case c = batch_case(formula, 3);
    const Instance instance(c);
    DecodeState state = new_state(c, mode);
    Case one = c;
    one.batch = 1;
    std::vector<DecodeState> alone(3, new_state(one, mode));
    SerialParallel serial;
    for (std::int64_t first = 0; first < c.n; first += kStep) {
      const std::int64_t turn = first / kStep;
      const Numbers counts = {turn % 5, (turn % 2) * 3, kStep};
      Buffer o = output_of(instance, c.dtype);
      DecodeInputs in = inputs_of(instance, first, kStep);
      in.counts = counts;
      const std::vector<std::byte> before = saved_member(state, 1);
      state.step(in, tokens_of(o, first, kStep), serial);
      if (counts[1] == 0) {
        EXPECT_EQ(saved_member(state, 1), before);
      }
      for (std::int64_t b = 0; b < 3; ++b) {
        const std::int64_t count = counts[static_cast<std::size_t>(b)];
        Instance text(one);
        text.q = member_of(instance.q, b);
        text.k = member_of(instance.k, b);
        text.v = member_of(instance.v, b);
        Buffer want = output_of(text, c.dtype);
        DecodeState& other = alone[static_cast<std::size_t>(b)];
        read_pieces(other, text, first, {count}, want);
        // Beyond the count both hold NaN, of which no bit has changed.
        EXPECT_TRUE(same_bits(member_of(o, b), want));
        EXPECT_EQ(state.length(b), other.length(0));
        EXPECT_EQ(state.folded(b), other.folded(0));
      }
    }
    for (std::int64_t b = 0; b < 3; ++b)
      EXPECT_EQ(saved_member(state, b),
                alone[static_cast<std::size_t>(b)].save());
  }
}

TEST(DecodeBatch, NoTokensChangeNothing) {
  const Case c = batch_case("x^2/sqrt(N)", 2);
  const Instance instance(c);
  DecodeState state = new_state(c);
  Buffer o = output_of(instance, c.dtype);
  read_pieces(state, instance, 0, {50}, o);
  const std::vector<std::byte> before = state.save();
  read_pieces(state, instance, 50, {0}, o);
  SerialParallel serial;
  const Numbers none = {0, 0};
  DecodeInputs in = inputs_of(instance, 50, 3);
  in.counts = none;
  state.step(in, tokens_of(o, 50, 3), serial);
  EXPECT_EQ(state.save(), before);
  EXPECT_TRUE(std::isnan(at(o.tensor, {1, 1, 50, 0})));
  EXPECT_EQ(state.length(1), 50);
}

// With D = E = 8, x^3 has 120 features, in rows of 16 numbers: as much as 120
// tokens of 16.
TEST(DecodeSize, AutoGoesFromCacheToSumsWhereTheyAreSmaller) {
  Case c = text_case("x^3/sqrt(N)", 500);
  c.heads = 4, c.kv_heads = 2, c.d = c.e = 8;
  const Instance instance(c);
  DecodeState state = new_state(c, DecodeMode::kAuto);
  Buffer o = output_of(instance, c.dtype);
  EXPECT_EQ(state.bytes(), 0);
  constexpr std::size_t kToken = 2 * 16 * 4, kSums = 2 * 120 * 16 * 4;
  std::size_t most = 0;
  for (std::int64_t t = 1; t <= c.n; ++t) {
    read_pieces(state, instance, t - 1, {1}, o);
    const std::int64_t folded = t < 120 ? 0 : 120 + (t - 120) / 48 * 48;
    ASSERT_EQ(state.folded(0), folded) << t;
    ASSERT_EQ(state.length(0), t);
    if (t < 120) {
      EXPECT_GE(state.bytes(), static_cast<std::size_t>(t) * kToken);
      EXPECT_LE(state.bytes(), kSums);
    } else if (t >= 168) {
      ASSERT_EQ(state.bytes(), kSums + 48 * kToken) << t;
    }
    most = std::max(most, state.bytes());
  }
  EXPECT_EQ(most, kSums + 48 * kToken);
}

// The same size of state, however the text was cut.
TEST(DecodeSize, APrefixAtOnceFoldsAsTokensDo) {
  Case c = text_case("x^3/sqrt(N)", 500);
  c.d = c.e = 8;
  const Instance instance(c);
  DecodeState state = new_state(c, DecodeMode::kAuto);
  Buffer o = output_of(instance, c.dtype);
  read_pieces(state, instance, 0, {500}, o);
  EXPECT_EQ(state.folded(0), 120 + 380 / 48 * 48);
  EXPECT_EQ(state.bytes(), (120 * 16 + 48 * 16) * 4);
}

// Storage and compute types count: half the cache lasts twice as long, sums in
// f64 twice as long again.
TEST(DecodeSize, TypesMoveTheSwitch) {
  Case c = text_case("x^3/sqrt(N)", 600);
  c.d = c.e = 8;
  const Instance instance(c);
  SerialParallel serial;
  for (const auto& [compute, storage, limit] :
       {std::tuple{DType::kF32, DType::kF16, 240},
        std::tuple{DType::kF64, DType::kBF16, 480},
        std::tuple{DType::kF64, DType::kF64, 120}}) {
    DecodeOptions options = options_of(c, DecodeMode::kAuto);
    options.compute = compute, options.storage = storage;
    DecodeState state(shape_of(c), options);
    const DecodeInputs most = inputs_of(instance, 0, limit - 1);
    const DecodeInputs last = inputs_of(instance, limit - 1, 1);
    state.append(most.k, most.v, {}, serial);
    EXPECT_EQ(state.folded(0), 0);
    state.append(last.k, last.v, {}, serial);
    EXPECT_EQ(state.folded(0), limit);
  }
}

TEST(DecodeSize, ACacheNeverFolds) {
  for (const char* formula : {"softmax", "x^3/sum", "x^2/sqrt(N)"}) {
    const Case c = batch_case(formula, 1);
    const Instance instance(c);
    DecodeState state = new_state(c, formula[1] == '^' && formula[2] == '2'
                                         ? DecodeMode::kCache
                                         : DecodeMode::kAuto);
    Buffer o = output_of(instance, c.dtype);
    read_pieces(state, instance, 0, {160}, o);
    EXPECT_EQ(state.folded(0), 0);
    EXPECT_GE(state.bytes(), 160U * (4 + 3) * 4);
  }
}

TEST(DecodeValue, ACopyIsAFork) {
  for (const auto& [formula, mode] : kKinds) {
    SCOPED_TRACE(formula);
    Case c = batch_case(formula, 2);
    const Instance instance(c);
    c.seed = 2;
    const Instance elsewhere(c);
    DecodeState state = new_state(c, mode);
    Buffer o = output_of(instance, c.dtype),
           want = output_of(instance, c.dtype);
    Buffer other = output_of(instance, c.dtype);
    read_pieces(state, instance, 0, {60}, o);
    DecodeState fork = state, untouched = state;
    read_pieces(fork, elsewhere, 60, pieces_of(100, 9), other);
    read_pieces(state, instance, 60, pieces_of(100, 9), o);
    read_pieces(untouched, instance, 0 + 60, pieces_of(100, 9), want);
    EXPECT_EQ(state.save(), untouched.save());
    EXPECT_NE(state.save(), fork.save());
    for (std::int64_t t = 60; t < 160; ++t)
      EXPECT_EQ(at(o.tensor, {1, 1, t, 2}), at(want.tensor, {1, 1, t, 2}));
  }
}

TEST(DecodeSelect, BeamsAreRepeatedDroppedAndOrdered) {
  for (const auto& [formula, mode] : kKinds) {
    SCOPED_TRACE(formula);
    const Case c = batch_case(formula, 3);
    const Instance instance(c);
    Buffer o = output_of(instance, c.dtype);
    DecodeState state = new_state(c, mode);
    const Numbers counts = {70, 3, 50};
    SerialParallel serial;
    DecodeInputs in = inputs_of(instance, 0, 70);
    in.counts = counts;
    state.step(in, tokens_of(o, 0, 70), serial);
    for (const Numbers& index :
         {Numbers{2, 2, 0}, Numbers{1}, Numbers{0, 1, 2, 2, 1, 0},
          Numbers{2, 1, 0}, Numbers{0, 1, 2}}) {
      DecodeState chosen = state;
      chosen.select(index);
      ASSERT_EQ(chosen.shape().batch, std::ssize(index));
      for (std::size_t b = 0; b < index.size(); ++b) {
        const auto member = static_cast<std::int64_t>(b);
        EXPECT_EQ(saved_member(chosen, member), saved_member(state, index[b]));
        EXPECT_EQ(chosen.length(member),
                  counts[static_cast<std::size_t>(index[b])]);
      }
      // Members that were one are no longer: they go on apart.
      Case wide = c;
      wide.batch = std::ssize(index);
      const Instance next(wide);
      Buffer rest = output_of(next, c.dtype);
      read_pieces(chosen, next, 0, {1, 60}, rest);
      EXPECT_EQ(chosen.length(0),
                counts[static_cast<std::size_t>(index[0])] + 61);
      for (std::size_t b = 1; b < index.size(); ++b)
        if (index[b] == index[0]) {
          EXPECT_NE(saved_member(chosen, 0),
                    saved_member(chosen, static_cast<std::int64_t>(b)));
        }
    }
  }
}

TEST(DecodeSelect, WrongMembersAreRefused) {
  const Case c = batch_case("x", 2);
  const Instance instance(c);
  Buffer o = output_of(instance, c.dtype);
  DecodeState state = new_state(c);
  read_pieces(state, instance, 0, {50}, o);
  const std::vector<std::byte> before = state.save();
  for (const Numbers& index : {Numbers{}, Numbers{2}, Numbers{0, -1}})
    EXPECT_THROW(state.select(index), std::invalid_argument);
  EXPECT_EQ(state.save(), before);
  EXPECT_THROW(static_cast<void>(state.length(2)), std::out_of_range);
  EXPECT_THROW(static_cast<void>(state.folded(-1)), std::out_of_range);
}

TEST(DecodeErrors, ShapesAndOptionsAreChecked) {
  const DecodeShape good = {1, 4, 2, 3, 3};
  const DecodeOptions options{.activation = Activation::parse("x^2/N")};
  EXPECT_NO_THROW(DecodeState(good, options));
  std::vector<DecodeShape> shapes(8, good);
  shapes[0].batch = 0, shapes[1].heads = -1, shapes[2].kv_heads = 3;
  shapes[3].d = 0, shapes[4].e = 0, shapes[5].heads = 0;
  shapes[6].kv_heads = 8, shapes[7].d = std::int64_t{1} << 40;
  for (const DecodeShape& shape : shapes)
    EXPECT_THROW(DecodeState(shape, options), std::invalid_argument);
  std::vector<DecodeOptions> wrong(6, options);
  wrong[0].compute = DType::kBF16;
  wrong[1].storage = static_cast<DType>(9);
  wrong[2].mode = static_cast<DecodeMode>(3);
  wrong[3].scale = kNaN;
  wrong[4].activation.degree = 9;
  wrong[5].activation.coefficient[1] = kNaN;
  for (const DecodeOptions& each : wrong)
    EXPECT_THROW(DecodeState(good, each), std::invalid_argument);
}

// A step that a test spoils before it is made.
struct Call {
  Call(const Instance& instance, Buffer& out)
      : in(inputs_of(instance, 60, 3)), o(tokens_of(out, 60, 3)) {}
  DecodeInputs in;
  Tensor o;
  Numbers counts;
};

const std::function<void(Call&)> kSpoilt[] = {
    [](Call& c) { c.in.q.size[3] = 3; },
    [](Call& c) { c.in.k.size[3] = 3; },
    [](Call& c) { c.in.v.size[3] = 4; },
    [](Call& c) { c.o.size[3] = 4; },
    [](Call& c) { c.in.q.size[2] = 2; },
    [](Call& c) { c.in.k.size[2] = 2; },
    [](Call& c) { c.in.v.size[2] = 4; },
    [](Call& c) { c.o.size[2] = 2; },
    [](Call& c) { c.in.q.size[1] = 1; },
    [](Call& c) { c.in.k.size[1] = 2; },
    [](Call& c) { c.in.v.size[0] = 1; },
    [](Call& c) { c.o.size[0] = 3; },
    [](Call& c) {
      c.in.q.size[2] = c.in.k.size[2] = c.in.v.size[2] = c.o.size[2] = -1;
    },
    [](Call& c) { c.in.q.stride[3] = 2; },
    [](Call& c) { c.in.k.stride[3] = 2; },
    [](Call& c) { c.in.v.stride[3] = 0; },
    [](Call& c) { c.o.stride[3] = 2; },
    [](Call& c) { c.in.q.stride[2] = -4; },
    [](Call& c) { c.in.k.stride[2] = -4; },
    [](Call& c) { c.in.v.stride[1] = -4; },
    [](Call& c) { c.in.k.stride[0] = std::int64_t{1} << 62; },
    [](Call& c) { c.o.stride[2] = 0; },
    [](Call& c) { c.o.stride[1] = 1; },
    [](Call& c) { c.in.q.data = nullptr; },
    [](Call& c) { c.in.k.data = nullptr; },
    [](Call& c) { c.in.v.data = nullptr; },
    [](Call& c) { c.o.data = nullptr; },
    [](Call& c) { c.in.q.dtype = static_cast<DType>(4); },
    [](Call& c) { c.in.v.dtype = static_cast<DType>(200); },
    [](Call& c) { c.o.dtype = static_cast<DType>(4); },
    [](Call& c) { c.counts = {3}; },
    [](Call& c) {
      c.counts = {3, 3, 3};
    },
    [](Call& c) {
      c.counts = {0, 4};
    },
    [](Call& c) {
      c.counts = {-1, 3};
    }};

TEST(DecodeErrors, NothingChangesWhenAStepIsRefused) {
  for (const auto& [formula, mode] : kKinds) {
    const Case c = batch_case(formula, 2);
    const Instance instance(c);
    Buffer o = output_of(instance, c.dtype);
    DecodeState state = new_state(c, mode), twin = state;
    read_pieces(state, instance, 0, {60}, o);
    const std::vector<std::byte> before = state.save(), out = o.bytes;
    SerialParallel serial;
    int number = 0;
    for (const auto& spoil : kSpoilt) {
      SCOPED_TRACE(number++);
      Call call(instance, o);
      spoil(call);
      call.in.counts = call.counts;
      EXPECT_THROW(state.step(call.in, call.o, serial), std::invalid_argument);
      EXPECT_EQ(state.save(), before);
      EXPECT_EQ(o.bytes, out);
    }
    Buffer want = output_of(instance, c.dtype);
    read_pieces(state, instance, 60, {3, 90}, o);
    read_pieces(twin, instance, 0, {60, 3, 90}, want);
    EXPECT_TRUE(same_bits(o, want));
  }
}

TEST(DecodeErrors, AppendChecksKeysValuesAndCounts) {
  const Case c = batch_case("x^2/sqrt(N)", 2);
  const Instance instance(c);
  Buffer o = output_of(instance, c.dtype);
  DecodeState state = new_state(c);
  read_pieces(state, instance, 0, {60}, o);
  const std::vector<std::byte> before = state.save();
  SerialParallel serial;
  for (const std::size_t i :
       {1, 2, 5, 6, 9, 10, 14, 15, 24, 25, 28, 30, 31, 32, 33}) {
    SCOPED_TRACE(i);
    Call call(instance, o);
    kSpoilt[i](call);
    EXPECT_THROW(state.append(call.in.k, call.in.v, call.counts, serial),
                 std::invalid_argument);
    EXPECT_EQ(state.save(), before);
  }
}

// Scores near 1, whose features do not fit in f32.
struct Overflow {
  Overflow() : c(text_case("x^2/sqrt(N)", 60)), instance(c) {
    for_each_index(instance.k.tensor.size, [&](const Extents& x) {
      instance.q.set(x, at(instance.q.tensor, x) * 0x1p-80);
      instance.k.set(x, at(instance.k.tensor, x) * 0x1p80);
    });
  }
  Buffer run(DecodeState state) const {
    Buffer o = output_of(instance, c.dtype);
    read_pieces(state, instance, 0, pieces_of(c.n, 1), o);
    return o;
  }
  Case c;
  Instance instance;
};

TEST(DecodeErrors, SumsThatOverflowThrowWithAdvice) {
  const Overflow overflow;
  const std::string what = message_of<std::overflow_error>(
      [&] { static_cast<void>(overflow.run(new_state(overflow.c))); });
  for (const char* part :
       {"[decode]", "x^2/sqrt(N)", "f32", "decode with a cache", "f64"}) {
    EXPECT_TRUE(contains(what, part)) << what;
  }
}

// What the advice says helps.
TEST(DecodeErrors, ACacheOrF64DoesNotOverflow) {
  const Overflow overflow;
  const Outputs want = overflow.instance.reference();
  Case wide = overflow.c;
  wide.compute = DType::kF64;
  const auto expect_right = [&](DecodeState state) {
    const Buffer o = overflow.run(std::move(state));
    for_each_index(o.tensor.size, [&](const Extents& x) {
      EXPECT_NEAR(at(o.tensor, x), at(want.o.tensor, x), 1e-4);
    });
  };
  expect_right(new_state(overflow.c, DecodeMode::kCache));
  expect_right(new_state(wide));
}

// NaN goes where it belongs, and is not called an overflow.
TEST(DecodeErrors, NanInATokenIsInAllThatFollow) {
  for (const auto& [formula, mode] : kKinds) {
    SCOPED_TRACE(formula);
    const Case c = batch_case(formula, 2);
    Instance instance(c);
    instance.v.set({1, 0, 30, 0}, kNaN);
    DecodeState state = new_state(c, mode);
    Buffer o = output_of(instance, c.dtype);
    ASSERT_NO_THROW(read_pieces(state, instance, 0, pieces_of(c.n, 1), o));
    for_each_index(o.tensor.size, [&](const Extents& x) {
      const bool spoilt = x[0] == 1 && x[2] >= 30 && x[3] == 0;
      EXPECT_EQ(std::isnan(at(o.tensor, x)), spoilt)
          << ::testing::PrintToString(x);
    });
  }
}

}  // namespace
}  // namespace polyattn::test
