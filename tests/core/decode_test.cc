// Decoding against the reference on the whole sequence, within the error that
// rounding can explain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decode_cases.h"
#include "core/error_bound.h"
#include "core/linear_bound.h"
#include "core/thread_parallel.h"

namespace polyattn::test {
namespace {

constexpr int kFormulaCount = 13;
const std::string kFormulas[kFormulaCount] = {
    "softmax",       "sigmoid",     "relu^2/N", "x",
    "x^2/sqrt(N)",   "x^3/sqrt(N)", "x^4/sum",  "-x^2/sum",
    "1 + x + x^2/2", "x^3/sum",     "3/N",      "(1 + x + x^2/2)/sum",
    "x^4/N"};

constexpr DecodeMode kModes[] = {DecodeMode::kAuto, DecodeMode::kCache,
                                 DecodeMode::kSums};

bool has_sums(const std::string& formula) {
  const Activation f = Activation::parse(formula);
  return f.kind == ActivationKind::kPolynomial && formula != "x^3/sum";
}

// What is right and how far off a state may be. A token may be read before or
// after the first fold, so what either path is allowed is allowed.
struct Answer {
  explicit Answer(const Instance& instance, const Case& c)
      : want(instance.reference()),
        bound(error_bound(instance, want, c.dtype)) {
    if (!has_sums(c.formula)) return;
    const Outputs linear = linear_bound(instance, want, c.dtype);
    for_each_index(want.o.tensor.size, [&](const Extents& x) {
      bound.o.set(x, std::max(at(bound.o.tensor, x), at(linear.o.tensor, x)));
    });
  }

  void expect(const Buffer& o) const { expect_within("o", o, want.o, bound.o); }

  Outputs want, bound;
};

// Ways to cut a text: token by token, at once, a prefix first, sevens, at
// random.
constexpr int kCuts = 5;
Numbers cut(std::int64_t total, int how) {
  if (how == 0) return pieces_of(total, 1);
  if (how == 1) return {total};
  if (how == 3) return pieces_of(total, 7);
  if (how == 2) {
    Numbers pieces = pieces_of(total - total * 2 / 3, 1);
    pieces.insert(pieces.begin(), total * 2 / 3);
    return pieces;
  }
  Numbers pieces;
  std::mt19937_64 random(7);
  for (; total > 0; total -= pieces.back())
    pieces.push_back(std::min<std::int64_t>(
        static_cast<std::int64_t>(random() % 71), total));
  return pieces;
}

class Decode : public ::testing::TestWithParam<int> {
 protected:
  std::string formula() const { return kFormulas[GetParam()]; }
  // Three folds.
  Case small_text(int turn) const {
    constexpr std::int64_t kWidths[] = {4, 1, 5, 3};
    Case c = text_case(formula(), 150);
    c.batch = 1 + turn % 2, c.heads = 4 - turn % 2 * 2, c.kv_heads = 2;
    c.d = kWidths[turn % 4], c.e = kWidths[turn / 2 % 4];
    c.strided = turn % 3 == 1;
    if (turn % 5 == 2) c.scale = -0.4;
    c.seed = static_cast<std::uint64_t>(turn) + 1;
    c.dtype = kTypes[turn % 8].dtype;
    c.compute = kTypes[turn % 8].compute;
    return c;
  }
};

INSTANTIATE_TEST_SUITE_P(Formula, Decode, ::testing::Range(0, kFormulaCount));

void expect_decodes(const Case& c, DecodeMode mode, const Instance& instance,
                    const Answer& answer) {
  for_each_target(supported_targets(), [&](const std::string&) {
    for (int how = 0; how < kCuts; ++how) {
      SCOPED_TRACE("cut " + std::to_string(how));
      DecodeState state = new_state(c, mode);
      Buffer o = output_of(instance, c.dtype);
      read_pieces(state, instance, 0, cut(c.n, how), o);
      answer.expect(o);
      EXPECT_TRUE(o.padding_untouched());
      EXPECT_EQ(state.length(0), c.n);
      if (mode == DecodeMode::kSums) {
        EXPECT_GT(state.folded(0), 0);
      } else if (mode == DecodeMode::kCache || !has_sums(c.formula)) {
        EXPECT_EQ(state.folded(0), 0);
      }
    }
  });
}

TEST_P(Decode, EveryModeTypeAndTarget) {
  for (int turn = 0; turn < 8; ++turn) {
    if (light() && (turn + GetParam()) % 4 != 0) continue;
    const Case c = small_text(turn + GetParam());
    SCOPED_TRACE(::testing::PrintToString(c));
    const Instance instance(c);
    const Answer answer(instance, c);
    for (const DecodeMode mode : kModes) {
      SCOPED_TRACE("mode " + std::to_string(static_cast<int>(mode)));
      if (mode == DecodeMode::kSums && !has_sums(formula())) {
        EXPECT_THROW(new_state(c, mode), std::invalid_argument);
        continue;
      }
      expect_decodes(c, mode, instance, answer);
    }
  }
}

// Features of more than a block, and folds of 96.
TEST_P(Decode, WideRows) {
  if (light() && GetParam() % 3 != 0) return;
  Case c = text_case(formula(), 230);
  c.d = 13, c.e = 21, c.heads = 2;
  const Instance instance(c);
  const Answer answer(instance, c);
  for (const DecodeMode mode : kModes)
    if (mode != DecodeMode::kSums || has_sums(formula()))
      expect_decodes(c, mode, instance, answer);
}

// A storage type narrower than the inputs rounds keys and values once, when
// they are read; queries stay as they are.
TEST_P(Decode, StorageRoundsKeysAndValuesOnce) {
  for (const DType storage : {DType::kBF16, DType::kF16, DType::kF64}) {
    Case c = text_case(formula(), 130);
    c.heads = 2, c.e = 7;
    const Instance given(c);
    Instance rounded(c);
    const auto round = [&](Buffer& b) {
      Buffer narrow(storage, b.tensor.size, contiguous_strides(b.tensor.size));
      for_each_index(b.tensor.size, [&](const Extents& x) {
        narrow.set(x, at(b.tensor, x));
        b.set(x, at(narrow.tensor, x));
      });
    };
    round(rounded.k), round(rounded.v);
    const Answer answer(rounded, c);
    for (const DecodeMode mode : {DecodeMode::kCache, DecodeMode::kAuto}) {
      DecodeOptions options = options_of(c, mode);
      options.storage = storage;
      DecodeState state(shape_of(c), options);
      Buffer o = output_of(given, c.dtype);
      read_pieces(state, given, 0, cut(c.n, 2), o);
      answer.expect(o);
    }
  }
}

TEST_P(Decode, ThreadsDoNotChangeABit) {
  Case c = small_text(GetParam());
  c.d = 13;
  const Instance instance(c);
  for (const DecodeMode mode : {DecodeMode::kCache, DecodeMode::kAuto}) {
    DecodeState alone = new_state(c, mode);
    Buffer want = output_of(instance, c.dtype);
    read_pieces(alone, instance, 0, {100, 1, 1, 48}, want);
    for (const int workers : {2, 3, 7}) {
      for (const auto order : {TaskOrder::kAscending, TaskOrder::kShuffled}) {
        ThreadParallel parallel(workers, order);
        DecodeState state = new_state(c, mode);
        Buffer o = output_of(instance, c.dtype);
        std::int64_t first = 0;
        for (const std::int64_t count : {100, 1, 1, 48}) {
          state.step(inputs_of(instance, first, count),
                     tokens_of(o, first, count), parallel);
          first += count;
        }
        EXPECT_TRUE(same_bits(o, want));
        EXPECT_EQ(state.save(), alone.save());
      }
    }
  }
}

// Whatever the target that a text was begun on.
TEST_P(Decode, GoesOnOnAnotherTarget) {
  const Case c = small_text(3 + GetParam());
  const Instance instance(c);
  const Answer answer(instance, c);
  const std::vector<std::string> targets = supported_targets();
  for_each_target(targets, [&](const std::string& first) {
    DecodeState begun = new_state(c, DecodeMode::kAuto);
    Buffer o = output_of(instance, c.dtype);
    read_pieces(begun, instance, 0, {100, 1, 1, 1}, o);
    const std::vector<std::byte> saved = begun.save();
    for (const std::string& second : targets) {
      SCOPED_TRACE("then " + second);
      force_target(second);
      DecodeState state = DecodeState::load(saved);
      read_pieces(state, instance, 103, pieces_of(c.n - 103, 1), o);
      answer.expect(o);
      force_target(first);
    }
  });
}

// Tokens without a result leave the same state as those with one.
TEST_P(Decode, AppendIsAStepWithoutResult) {
  const Case c = small_text(GetParam());
  const Instance instance(c);
  SerialParallel serial;
  for (const DecodeMode mode : {DecodeMode::kCache, DecodeMode::kAuto}) {
    DecodeState stepped = new_state(c, mode), appended = stepped;
    Buffer o = output_of(instance, c.dtype);
    std::int64_t first = 0;
    for (const std::int64_t count : {1, 0, 60, 30, 59}) {
      const DecodeInputs in = inputs_of(instance, first, count);
      stepped.step(in, tokens_of(o, first, count), serial);
      appended.append(in.k, in.v, {}, serial);
      EXPECT_EQ(stepped.save(), appended.save());
      first += count;
    }
  }
}

}  // namespace
}  // namespace polyattn::test
