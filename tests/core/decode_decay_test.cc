// Decoding with decay: against the reference on the whole sequence, as a value,
// in files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decode_cases.h"
#include "core/linear_bound.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

constexpr DecodeMode kModes[] = {DecodeMode::kAuto, DecodeMode::kCache,
                                 DecodeMode::kSums};

Case decay_text(const std::string& formula, std::int64_t tokens) {
  Case c = text_case(formula, tokens);
  c.path = Path::kAuto, c.decay = Decay::kGates;
  return c;
}

DecodeInputs tokens_with_decay(const Instance& instance, std::int64_t first,
                               std::int64_t count) {
  DecodeInputs in = inputs_of(instance, first, count);
  in.log_decay = tokens_of(instance.log_decay, first, count);
  return in;
}

void read_with_decay(DecodeState& state, const Instance& instance,
                     std::int64_t first, const Numbers& pieces, Buffer& o) {
  SerialParallel serial;
  for (const std::int64_t count : pieces) {
    state.step(tokens_with_decay(instance, first, count),
               tokens_of(o, first, count), serial);
    first += count;
  }
}

TEST(DecodeDecay, IsAttentionOnTheWholeSequence) {
  int turn = 0;
  for (const char* formula : {"x/sqrt(N)", "x^2/sqrt(N)", "x^3/N", "x^2/sum",
                              "1 + x + x^2/2", "3/N"}) {
    for (const DecodeMode mode : kModes) {
      for (const Numbers& pieces :
           {Numbers{200}, pieces_of(200, 1), Numbers{130, 1, 1, 60, 8}}) {
        Case c = decay_text(formula, 200);
        c.batch = c.kv_heads = 2, c.heads = 4, c.e = 5;
        c.dtype = kTypes[++turn % 8].dtype;
        c.compute = kTypes[turn % 8].compute;
        SCOPED_TRACE(::testing::PrintToString(c));
        const Instance instance(c);
        const Outputs want = instance.reference();
        const Outputs bound = linear_bound(instance, want, c.dtype);
        DecodeState state = new_state(c, mode);
        Buffer o = output_of(instance, c.dtype);
        read_with_decay(state, instance, 0, pieces, o);
        expect_within("o", o, want.o, bound.o);
      }
    }
  }
}

// Tokens that came without decay have a factor of 1.
TEST(DecodeDecay, MayBeginLateAndPause) {
  for (const DecodeMode mode : kModes) {
    Case c = decay_text("x^2/sqrt(N)", 180);
    c.heads = 2;
    Instance instance(c);
    const auto decays = [](std::int64_t t) { return t >= 70 && t < 120; };
    for_each_index(instance.log_decay.tensor.size, [&](const Extents& x) {
      instance.log_decay.set(x, decays(x[2]) ? -0.1 : 0);
    });
    const Outputs want = instance.reference();
    const Outputs bound = linear_bound(instance, want, c.dtype);
    DecodeState state = new_state(c, mode);
    Buffer o = output_of(instance, c.dtype);
    read_pieces(state, instance, 0, {50, 20}, o);
    read_with_decay(state, instance, 70, {1, 49}, o);
    read_pieces(state, instance, 120, {1, 59}, o);
    expect_within("o", o, want.o, bound.o);
  }
}

// A number for each key head, and a prefix without its queries.
TEST(DecodeDecay, RepeatsASizeOfOneAndAppends) {
  for (const DecodeMode mode : kModes) {
    Case c = decay_text("x^2/N", 130);
    c.batch = 2, c.heads = c.kv_heads = 2, c.decay = Decay::kHeads;
    const Instance instance(c);
    const Outputs want = instance.reference();
    const Outputs bound = linear_bound(instance, want, c.dtype);
    DecodeState state = new_state(c, mode);
    SerialParallel serial;
    state.append(tokens_of(instance.k, 0, 100), tokens_of(instance.v, 0, 100),
                 {}, serial, instance.log_decay.tensor);
    Buffer o = output_of(instance, c.dtype);
    for (std::int64_t t = 100; t < 130; ++t) {
      DecodeInputs in = inputs_of(instance, t, 1);
      in.log_decay = instance.log_decay.tensor;
      state.step(in, tokens_of(o, t, 1), serial);
    }
    for_each_index(o.tensor.size, [&](const Extents& x) {
      if (x[2] < 100) o.set(x, at(want.o.tensor, x));
    });
    expect_within("o", o, want.o, bound.o);
  }
}

// Saved and loaded, forked and selected, bit by bit.
TEST(DecodeDecay, GoesOnFromAFileAndAsACopy) {
  for (const DecodeMode mode : kModes) {
    Case c = decay_text("x^2/sum", 200);
    c.batch = c.heads = c.kv_heads = 2;
    const Instance instance(c);
    for (const std::int64_t length : {1, 47, 48, 49, 100}) {
      DecodeState state = new_state(c, mode);
      Buffer o = output_of(instance, c.dtype),
             want = output_of(instance, c.dtype);
      read_with_decay(state, instance, 0, {length}, want);
      const std::vector<std::byte> saved = state.save();
      DecodeState loaded = DecodeState::load(saved);
      loaded.select(Numbers{0, 1});
      EXPECT_EQ(loaded.save(), saved);
      EXPECT_EQ(loaded.bytes(), DecodeState::load(saved).bytes());
      for_each_index({2, 2, length, 4},
                     [&](const Extents& x) { o.set(x, at(want.tensor, x)); });
      read_with_decay(loaded, instance, length, {1, 60, 200 - length - 61}, o);
      read_with_decay(state, instance, length, {1, 60, 200 - length - 61},
                      want);
      EXPECT_TRUE(same_bits(o, want));
      EXPECT_EQ(loaded.save(), state.save());
    }
  }
}

// A state without decay is the file that it always was.
TEST(DecodeDecay, FilesWithoutDecayKeepTheirVersion) {
  const Case c = decay_text("x/N", 50);
  const Instance instance(c);
  DecodeState plain = new_state(c), decays = new_state(c);
  Buffer o = output_of(instance, c.dtype);
  read_pieces(plain, instance, 0, {50}, o);
  read_with_decay(decays, instance, 0, {50}, o);
  const auto version = [](const DecodeState& state) {
    return static_cast<char>(state.save()[7]);
  };
  EXPECT_EQ(version(plain), '1');
  EXPECT_EQ(version(decays), '2');
}

// FNV-1a over what stands before it.
std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  bytes.resize(bytes.size() - 8);
  for (const std::byte b : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<std::byte>(hash >> (8 * i) & 0xff));
  return bytes;
}

TEST(DecodeDecay, DamagedFilesAreRefusedOrUsable) {
  const Case c = decay_text("x/N", 50);
  const Instance instance(c);
  DecodeState state = new_state(c);
  Buffer o = output_of(instance, c.dtype);
  read_with_decay(state, instance, 0, {50}, o);
  const std::vector<std::byte> saved = state.save();
  std::int64_t refused = 0;
  for (std::size_t i = 0; i < saved.size() - 8; ++i) {
    for (const int change : {1, 0x40, 0x80, 0xff}) {
      std::vector<std::byte> spoilt = saved;
      spoilt[i] ^= static_cast<std::byte>(change);
      EXPECT_THROW(DecodeState::load(spoilt), std::invalid_argument);
      try {
        DecodeState loaded = DecodeState::load(sealed(spoilt));
        EXPECT_EQ(DecodeState::load(loaded.save()).save(), loaded.save());
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    }
    const std::vector<std::byte> part(
        saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THROW(DecodeState::load(part), std::invalid_argument) << i;
    if (i >= 8) {
      EXPECT_THROW(DecodeState::load(sealed(part)), std::invalid_argument) << i;
    }
  }
  EXPECT_GT(refused, 0);
}

std::string refusal(const Case& c, const ConstTensor& log_decay) {
  const Instance instance(c);
  DecodeState state = new_state(c, DecodeMode::kAuto);
  Buffer o = output_of(instance, c.dtype);
  DecodeInputs in = inputs_of(instance, 0, c.n);
  in.log_decay = log_decay;
  SerialParallel serial;
  const std::vector<std::byte> before = state.save();
  const std::string message = message_of<std::invalid_argument>(
      [&] { state.step(in, o.tensor, serial); });
  EXPECT_EQ(state.save(), before);
  return message;
}

TEST(DecodeDecay, IsRefusedWhereThereIsNone) {
  Case c = decay_text("x^2/N", 5);
  Instance instance(c);
  ConstTensor wrong = instance.log_decay.tensor;
  wrong.size[2] = 4;
  EXPECT_EQ(refusal(c, wrong),
            "[decode] log_decay size[2] 4 is neither 1 nor 5");
  instance.log_decay.set({0, 0, 2, 0}, 1);
  EXPECT_EQ(refusal(c, instance.log_decay.tensor),
            "[decode] log_decay[0, 0, 2] 1 is not <= 0");
  c.formula = "softmax";
  EXPECT_EQ(refusal(c, instance.log_decay.tensor),
            "[decode] log_decay is for polynomials, and softmax is none");
  c.formula = "x^3/sum";
  EXPECT_TRUE(contains(refusal(c, instance.log_decay.tensor),
                       "[decode] log_decay: x^3/sum has weights of both"));
}

}  // namespace
}  // namespace polyattn::test
