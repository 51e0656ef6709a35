// Decoding in a sliding window: against the reference on the whole sequence, in
// memory that does not grow, as a value, in files.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decode_cases.h"
#include "core/error_bound.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

using Bytes = std::vector<std::byte>;

Case window_text(const std::string& formula, std::int64_t tokens,
                 std::int64_t window) {
  Case c = text_case(formula, tokens);
  c.window = {window - 1, 0};
  return c;
}

DecodeState state_of(const Case& c, DecodeMode mode = DecodeMode::kAuto) {
  DecodeOptions options = options_of(c, mode);
  options.window = c.window.left + 1;
  return {shape_of(c), options};
}

TEST(DecodeWindow, IsAttentionOnTheWholeSequence) {
  int turn = 0;
  for (const char* formula :
       {"softmax", "x^2/sqrt(N)", "x^3/N", "x^4/sum", "sigmoid", "relu^2/N"}) {
    for (const std::int64_t window : {1, 2, 7, 48, 100, 199, 200, 1000}) {
      for (const Numbers& pieces :
           {Numbers{200}, pieces_of(200, 1), Numbers{0, 130, 1, 1, 60, 8}}) {
        Case c = window_text(formula, 200, window);
        c.batch = c.kv_heads = 2, c.heads = 4, c.e = 5;
        c.dtype = kTypes[++turn % 8].dtype;
        c.compute = kTypes[turn % 8].compute;
        SCOPED_TRACE(::testing::PrintToString(c));
        const Instance instance(c);
        const Outputs want = instance.reference();
        DecodeState state = state_of(c);
        Buffer o = output_of(instance, c.dtype);
        read_pieces(state, instance, 0, pieces, o);
        expect_within("o", o, want.o, error_bound(instance, want, c.dtype).o);
        EXPECT_EQ(state.length(1), 200);
        EXPECT_EQ(state.folded(1), 0);
      }
    }
  }
}

TEST(DecodeWindow, MemoryDoesNotGrow) {
  for (const std::int64_t window : {1, 5, 64, 100}) {
    Case c = window_text("softmax", 400, window);
    c.heads = 2, c.kv_heads = 1, c.d = 3, c.e = 2;
    const Instance instance(c);
    DecodeState state = state_of(c);
    Buffer o = output_of(instance, c.dtype);
    read_pieces(state, instance, 0, {400}, o);
    const std::size_t after_a_prompt = state.bytes();
    EXPECT_LE(after_a_prompt,
              (2 * static_cast<std::size_t>(window) + 48) * 5 * sizeof(float));
    SerialParallel serial;
    for (int i = 0; i < 250; ++i)
      state.append(instance.k.tensor, instance.v.tensor, {}, serial);
    for (int i = 0; i < 300; ++i) read_pieces(state, instance, i, {1}, o);
    EXPECT_EQ(state.length(0), 100'700);
    EXPECT_EQ(state.bytes(), after_a_prompt);
  }
}

// Members of different lengths, and a copy that goes another way.
TEST(DecodeWindow, MembersAndCopiesAreTextsOfTheirOwn) {
  Case c = window_text("softmax", 150, 10);
  c.batch = 2;
  const Instance instance(c);
  DecodeState state = state_of(c), late = state;
  Buffer o = output_of(instance, c.dtype);
  Buffer want = output_of(instance, c.dtype);
  SerialParallel serial;
  const Numbers counts = {150, 0};
  DecodeInputs in = inputs_of(instance, 0, 150);
  in.counts = counts;
  late.step(in, o.tensor, serial);
  EXPECT_EQ(late.length(0), 150);
  EXPECT_EQ(late.length(1), 0);
  const Numbers twice = {1, 1};
  late.select(twice);
  read_pieces(late, instance, 0, {150}, o);
  read_pieces(state, instance, 0, {150}, want);
  EXPECT_TRUE(same_bits(o, want));
}

TEST(DecodeWindow, GoesOnFromAFile) {
  for (const std::int64_t window : {1, 10, 60}) {
    Case c = window_text("x^2/sqrt(N)", 300, window);
    c.batch = c.heads = c.kv_heads = 2;
    const Instance instance(c);
    DecodeState state = state_of(c);
    for (const std::int64_t length : {0, 1, 9, 60, 61, 107, 108, 250}) {
      Buffer o = output_of(instance, c.dtype);
      Buffer want = output_of(instance, c.dtype);
      read_pieces(state, instance, state.length(0), {length - state.length(0)},
                  want);
      const Bytes saved = state.save();
      DecodeState loaded = DecodeState::load(saved);
      EXPECT_EQ(loaded.save(), saved);
      EXPECT_EQ(loaded.options().window, window);
      EXPECT_EQ(loaded.length(1), length);
      DecodeState straight = state;
      // Where a cache begins decides how its keys are blocked, not what is
      // seen: the same to rounding.
      const std::int64_t rest = 300 - length;
      read_pieces(loaded, instance, length, pieces_of(rest, 7), o);
      read_pieces(straight, instance, length, pieces_of(rest, 7), want);
      for (std::int64_t t = length; t < 300; ++t)
        for_each_index({2, 2, 1, c.e}, [&](const Extents& x) {
          const Extents at_t = {x[0], x[1], t, x[3]};
          EXPECT_NEAR(at(o.tensor, at_t), at(want.tensor, at_t), 2e-5);
        });
    }
  }
}

TEST(DecodeWindow, WhatMakesNoSenseIsRefused) {
  const auto refusal = [](const std::string& formula, std::int64_t window,
                          DecodeMode mode) {
    return message_of<std::invalid_argument>([&] {
      DecodeOptions options = options_of(text_case(formula, 1), mode);
      options.window = window;
      const DecodeState state(shape_of(text_case(formula, 1)), options);
    });
  };
  EXPECT_EQ(refusal("softmax", -1, DecodeMode::kAuto),
            "[decode] a window of -1 tokens is not in 0 .. 16777216 (0: no "
            "window)");
  EXPECT_EQ(refusal("x^2/N", 8, DecodeMode::kSums),
            "[decode] no sums: a window of 8 tokens forgets what they cannot");
  EXPECT_EQ(refusal("x^2/N", 8, DecodeMode::kCache), "");

  Case c = window_text("x^2/N", 5, 8);
  c.path = Path::kAuto;
  Case faded = text_case("x^2/N", 5);
  faded.path = Path::kAuto, faded.decay = Decay::kGates;
  const Instance instance(faded);
  DecodeState state = state_of(c);
  Buffer o = output_of(instance, c.dtype);
  DecodeInputs in = inputs_of(instance, 0, 5);
  in.log_decay = tokens_of(instance.log_decay, 0, 5);
  SerialParallel serial;
  EXPECT_EQ(message_of<std::invalid_argument>(
                [&] { state.step(in, o.tensor, serial); }),
            "[decode] log_decay together with a window of 8 tokens");
  EXPECT_EQ(state.length(0), 0);
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

// A text of 20 tokens in a window of 4, of "softmax".
Bytes small_save() {
  Case c = window_text("softmax", 20, 4);
  c.d = 2, c.e = 1;
  const Instance instance(c);
  DecodeState state = state_of(c);
  Buffer o = output_of(instance, c.dtype);
  read_pieces(state, instance, 0, {20}, o);
  return state.save();
}

TEST(DecodeWindow, DamagedFilesAreRefusedOrUsable) {
  const Bytes saved = small_save();
  constexpr std::size_t kWindow = 56 + 7 + 4 * 8, kLength = kWindow + 8,
                        kCached = kLength + 8;
  const auto refusal = [&](std::size_t at, std::int64_t value) {
    Bytes changed = saved;
    std::memcpy(changed.data() + at, &value, sizeof(value));
    return message_of<std::invalid_argument>(
        [&] { DecodeState::load(sealed(changed)); });
  };
  const std::string start = "[decode] not a saved state: ";
  EXPECT_EQ(refusal(kLength, 20), "");
  EXPECT_EQ(refusal(kWindow, 0), start + "it has a window of 0 tokens");
  EXPECT_EQ(refusal(kWindow, -4),
            "[decode] a window of -4 tokens is not in 0 .. 16777216 (0: no "
            "window)");
  EXPECT_EQ(refusal(kWindow, 5),
            start + "3 cached tokens are not the 4 that its window sees");
  EXPECT_EQ(refusal(kLength, 2), start + "3 of 2 tokens cannot be cached");
  EXPECT_EQ(refusal(kCached, 2),
            start + "2 cached tokens are not the 3 that its window sees");
  for (std::size_t i = 0; i < saved.size() - 8; ++i) {
    for (const int change : {1, 0x10, 0x80, 0xff}) {
      Bytes changed = saved;
      changed[i] ^= static_cast<std::byte>(change);
      changed = sealed(changed);
      try {
        DecodeState state = DecodeState::load(changed);
        EXPECT_EQ(DecodeState::load(state.save()).save(), state.save());
      } catch (const std::invalid_argument&) {
      }
    }
    EXPECT_THROW(DecodeState::load(sealed(
                     {saved.begin(), saved.begin() + std::ptrdiff_t(i) + 8})),
                 std::invalid_argument);
  }
}

}  // namespace
}  // namespace polyattn::test
