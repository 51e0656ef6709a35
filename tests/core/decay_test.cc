// Attention with decay against the reference, within the error that rounding
// can explain, and against itself.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/linear_cases.h"
#include "polyattn/plan.h"

namespace polyattn::test {
namespace {

class DecayKernel : public EveryLinearFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, DecayKernel,
                         ::testing::Range(0, kLinearFormulaCount));

Decay decay_of(int turn) {
  constexpr Decay kAll[] = {Decay::kGates, Decay::kHeads, Decay::kShared};
  return kAll[turn % 3];
}

// The structures of the linear path, all causal.
Case with_decay(Case c, int structure, int turn) {
  c = with_linear_structure(c, structure);
  if (c.causal == Causal::kNone)
    c.causal = turn % 2 == 0 ? Causal::kFirst : Causal::kLast;
  c.decay = decay_of(turn);
  c.seed = static_cast<std::uint64_t>(turn) + 1;
  return c;
}

TEST_P(DecayKernel, EveryStructureTypeAndTarget) {
  int turn = GetParam();
  for (int s = 0; s < kLinearStructures; ++s) {
    for (const Types& types : kTypes) {
      ++turn;
      if (turn % (light() ? 8 : 2) != 0) continue;
      Case c = with_decay(small_case(turn), s, turn);
      c.formula = formula();
      c.dtype = types.dtype, c.compute = types.compute;
      expect_linear(c, supported_targets());
    }
  }
}

// Around strips and chunks; a chunk of 0 is the whole sequence while it is
// short.
TEST_P(DecayKernel, LengthsAroundChunks) {
  struct Shape {
    std::int64_t n, m, chunk;
  };
  constexpr Shape kShapes[] = {
      {0, 5, 0},      {5, 0, 0},      {1, 1, 0},      {47, 47, 48},
      {48, 48, 48},   {49, 49, 0},    {63, 63, 0},    {96, 96, 48},
      {97, 97, 96},   {150, 100, 48}, {100, 150, 48}, {1, 150, 48},
      {150, 1, 48},   {200, 104, 96}, {104, 200, 96}, {144, 48, 48},
      {48, 144, 48},  {290, 290, 0},  {200, 0, 48},   {0, 200, 48},
      {311, 311, 96}, {145, 146, 0}};
  int turn = GetParam();
  for (const Shape& shape : kShapes) {
    for (const Causal causal : {Causal::kFirst, Causal::kLast}) {
      if (++turn % (light() ? 12 : 3) != 0) continue;
      const Case c{.heads = turn % 2 == 0 ? 2 : 1,
                   .n = shape.n,
                   .m = shape.m,
                   .d = turn % 4 == 0 ? 16 : 3,
                   .e = turn % 5 == 0 ? 17 : 4,
                   .formula = formula(),
                   .causal = causal,
                   .mask = turn % 5 == 0 ? Extra::kPadding : Extra::kAbsent,
                   .dtype = kTypes[turn % 8].dtype,
                   .compute = kTypes[turn % 8].compute,
                   .strided = turn % 7 == 0,
                   .seed = static_cast<std::uint64_t>(turn),
                   .chunk = shape.chunk,
                   .decay = decay_of(turn / 3)};
      expect_linear(c, targets_for(c));
    }
  }
}

TEST_P(DecayKernel, AwkwardWidths) {
  int turn = GetParam();
  for (const std::int64_t d : {1, 16, 59, 64}) {
    for (const std::int64_t e : {1, 16, 59, 111, 128}) {
      if (++turn % (light() ? 16 : 8) != 0) continue;
      if (formula().find("x^4") != std::string::npos && d > 16) continue;
      const Case c{.n = 97,
                   .m = 97,
                   .d = d,
                   .e = e,
                   .formula = formula(),
                   .causal = Causal::kFirst,
                   .chunk = d > 16 && formula().find("x^3") != std::string::npos
                                ? 0
                                : 48,
                   .decay = decay_of(turn)};
      expect_linear(c, targets_for(c));
    }
  }
}

TEST_P(DecayKernel, ThreadsDoNotChangeABit) {
  const Case c{.batch = 2,
               .heads = 4,
               .kv_heads = 2,
               .n = 170,
               .m = 170,
               .d = 9,
               .formula = formula(),
               .causal = Causal::kFirst,
               .mask = Extra::kPadding,
               .path = Path::kLinear,
               .chunk = GetParam() % 2 == 0 ? 48 : 0,
               .decay = decay_of(GetParam())};
  const Instance instance(c);
  expect_same_on_threads(run_linear(instance, c.dtype), [&](Parallel& p) {
    return run_linear(instance, c.dtype, p);
  });
}

TEST_P(DecayKernel, EverySubsetOfTheGradients) {
  const Case c{.heads = 2,
               .n = 100,
               .m = 100,
               .formula = formula(),
               .causal = Causal::kLast,
               .path = Path::kLinear,
               .chunk = GetParam() % 2 == 0 ? 48 : 0,
               .decay = decay_of(GetParam())};
  const Instance instance(c);
  expect_every_subset(instance, c.dtype, run_linear(instance, c.dtype));
}

// A round is 2304 tokens; and a sequence that is too long for one chunk.
TEST(DecayRounds, LongerThanARound) {
  if (light()) return;
  for (const Causal causal : {Causal::kFirst, Causal::kLast}) {
    const bool first = causal == Causal::kFirst;
    const Case c{.n = 2400,
                 .m = first ? 2500 : 2350,
                 .d = 4,
                 .e = 3,
                 .formula = first ? "x^2/sum" : "(1 - x + x^2/3 - x^4/9)/N",
                 .causal = causal,
                 .mask = Extra::kPadding,
                 .decay = first ? Decay::kGates : Decay::kHeads};
    expect_linear(c, {supported_targets().back()});
  }
}

// The bound of d_log_decay adds up those of o and dv, for each key over all
// rows and keys behind it: 2^12 of them, whose sizes do not cancel as they do.
TEST(DecayPrecision, TheBoundIsSharp) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    for (const char* formula : {"x^2/sqrt(N)", "x/N", "x^2/sum"}) {
      const Case c{.n = 97,
                   .m = 97,
                   .d = 8,
                   .e = 16,
                   .formula = formula,
                   .causal = Causal::kFirst,
                   .dtype = type,
                   .compute = type,
                   .path = Path::kAuto,
                   .decay = Decay::kHeads};
      const Instance instance(c);
      const Outputs want = instance.reference();
      const Outputs bound = linear_bound(instance, want, type);
      const double u = type == DType::kF32 ? 0x1p-24 : 0x1p-52;
      const bool sum = std::string(formula).find("sum") != std::string::npos;
      expect_sharp("o", want.o, bound.o, u * (sum ? 0x1p18 : 0x1p14));
      expect_sharp("d_log_decay", want.d_log_decay, bound.d_log_decay,
                   u * (sum ? 0x1p23 : 0x1p21));
    }
  }
}

double relative_rms(const Buffer& got, const Buffer& want) {
  double error = 0, size = 0;
  for_each_index(want.tensor.size, [&](const Extents& x) {
    error += std::pow(at(got.tensor, x) - at(want.tensor, x), 2);
    size += std::pow(at(want.tensor, x), 2);
  });
  return std::sqrt(error / size);
}

// What a user gets: roundings mostly cancel.
TEST(DecayPrecision, TypicalErrorsAreSmall) {
  for (const char* formula : {"x/sqrt(N)", "x^2/sqrt(N)", "x^3/N", "x^2/sum"}) {
    const Case c{.n = 400,
                 .m = 400,
                 .d = 16,
                 .e = 16,
                 .formula = formula,
                 .causal = Causal::kFirst,
                 .path = Path::kLinear,
                 .chunk = 96,
                 .decay = Decay::kGates};
    SCOPED_TRACE(formula);
    const Instance instance(c);
    const Outputs want = instance.reference();
    const Outputs got = run_linear(instance, c.dtype);
    EXPECT_LT(relative_rms(got.o, want.o), 5e-6);
    EXPECT_LT(relative_rms(got.dq, want.dq), 2e-5);
    EXPECT_LT(relative_rms(got.dk, want.dk), 2e-5);
    EXPECT_LT(relative_rms(got.dv, want.dv), 5e-6);
    EXPECT_LT(relative_rms(got.d_log_decay, want.d_log_decay), 2e-5);
  }
}

// Nothing of what is behind a reset is left, however large it is.
TEST(DecayReset, HidesWhatOverflows) {
  const Case c{.n = 150,
               .m = 150,
               .formula = "x^2/sqrt(N)",
               .causal = Causal::kFirst,
               .path = Path::kLinear,
               .chunk = 48,
               .decay = Decay::kGates};
  Instance instance(c);
  for_each_index(instance.log_decay.tensor.size, [&](const Extents& x) {
    instance.log_decay.set(x, x[2] == 60 ? -kInf : -0.01);
  });
  const Outputs before = run_linear(instance, c.dtype);
  for_each_index(instance.v.tensor.size, [&](const Extents& x) {
    if (x[2] < 60) instance.v.set(x, kInf);
  });
  const Outputs after = run_linear(instance, c.dtype);
  std::int64_t wrong = 0;
  for_each_index(after.o.tensor.size, [&](const Extents& x) {
    // Up to the end of the strip, 0 times inf is NaN.
    if (x[2] >= 96 && at(after.o.tensor, x) != at(before.o.tensor, x)) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

// A short sequence has no state; POLYATTN_PLAN, which asks for a path where
// there are two, changes nothing.
TEST(DecayPlan, TheLinearPathIsTheOnlyOne) {
  Case c{.n = 100,
         .m = 100,
         .d = 16,
         .formula = "x^2/sqrt(N)",
         .causal = Causal::kFirst,
         .path = Path::kAuto,
         .decay = Decay::kGates};
  ::setenv("POLYATTN_PLAN", "dense", 1);
  for (const std::int64_t length : {100, 3000}) {
    c.n = c.m = length;
    const Instance instance(c);
    const PathEstimate plan = estimate_paths(
        instance.inputs(), instance.config(), Direction::kForward);
    EXPECT_EQ(plan.path, Path::kLinear);
    EXPECT_EQ(plan.reason,
              "a call with decay always takes it; a short sequence is one "
              "chunk");
    EXPECT_EQ(plan.state_bytes == 0, length == 100);
    Outputs out = instance.outputs(DType::kF32);
    EXPECT_EQ(attention_forward(instance.inputs(), instance.config(),
                                {out.o.tensor, out.rows, {}}),
              Path::kLinear);
  }
  ::unsetenv("POLYATTN_PLAN");
}

struct Wrong {
  Case c;
  const char* message;
};

TEST(DecayErrors, CallsThatCannotDecay) {
  const Case base{.n = 5,
                  .m = 5,
                  .formula = "x^2/sqrt(N)",
                  .causal = Causal::kFirst,
                  .path = Path::kAuto,
                  .decay = Decay::kGates};
  std::vector<Wrong> list(9, {base, ""});
  list[0].c.formula = "softmax";
  list[0].message = "log_decay is for polynomials, and softmax is none";
  list[1].c.formula = "relu^2/N";
  list[1].message = "log_decay is for polynomials, and relu^2/N is none";
  list[2].c.causal = Causal::kNone;
  list[2].message = "log_decay without causality: causal is none";
  list[3].c.bias = Extra::kFull;
  list[3].message = "log_decay together with a bias";
  list[4].c.dropout = 0.5;
  list[4].message = "log_decay together with dropout p 0.5";
  list[5].c.path = Path::kDense;
  list[5].message = "log_decay has no dense path: path is dense";
  list[6].c.mask = Extra::kFull;
  list[6].message = "no linear path: the mask differs from row to row";
  list[7].c.formula = "x^3/sum";
  list[7].message =
      "no linear path: x^3/sum has weights of both signs, whose absolute "
      "values are no polynomial";
  list[8].c.window = {.left = 2};
  list[8].message = "log_decay together with a window of 2 keys";
  for (const Wrong& each : list) {
    const Instance instance(each.c);
    Outputs out = instance.outputs(DType::kF32);
    const Outputs fresh = instance.outputs(DType::kF32);
    try {
      attention_forward(instance.inputs(), instance.config(),
                        {out.o.tensor, out.rows, {}});
      FAIL() << each.message;
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(
          error.what(),
          ("[attention_forward] " + std::string(each.message)).c_str());
    }
    EXPECT_EQ(out.o.bytes, fresh.o.bytes);
  }
}

std::string message_of(const AttentionInputs& in, const AttentionConfig& config,
                       Outputs& out, bool stats = false) {
  try {
    attention_forward(
        in, config,
        {out.o.tensor, out.rows,
         stats ? std::span(out.stats) : std::span<AttentionStats>{}});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(DecayErrors, ValuesAndShapes) {
  const Case c{.batch = 2,
               .heads = 4,
               .kv_heads = 2,
               .n = 5,
               .m = 5,
               .formula = "x^2/sqrt(N)",
               .causal = Causal::kFirst,
               .path = Path::kAuto,
               .decay = Decay::kGates};
  Instance instance(c);
  Outputs out = instance.outputs(DType::kF32);
  const auto with = [&](double value) {
    instance.log_decay.set({1, 0, 3, 0}, value);
    return message_of(instance.inputs(), instance.config(), out);
  };
  EXPECT_EQ(with(0.5),
            "[attention_forward] log_decay[1, 0, 3] 0.5 is not <= 0");
  EXPECT_EQ(with(kNaN),
            "[attention_forward] log_decay[1, 0, 3] nan is not <= 0");
  EXPECT_EQ(with(-0.5), "");
  AttentionInputs in = instance.inputs();
  in.log_decay->size[2] = 4;
  EXPECT_EQ(message_of(in, instance.config(), out),
            "[attention_forward] log_decay size[2] 4 is neither 1 nor 5");
  in.log_decay->size = {2, 2, 5, 3};
  EXPECT_EQ(message_of(in, instance.config(), out),
            "[attention_forward] log_decay size[3] 3 is neither 1 nor 1");
  EXPECT_EQ(message_of(instance.inputs(), instance.config(), out, true),
            "[attention_forward] log_decay together with stats; "
            "attention_norms gives the norms");
}

TEST(DecayErrors, GradientsAndOverflow) {
  Case c{.n = 200,
         .m = 200,
         .formula = "x^4/sqrt(N)",
         .causal = Causal::kFirst,
         .path = Path::kAuto,
         .chunk = 48,
         .decay = Decay::kGates};
  Instance instance(c);
  Outputs out = run_linear(instance, c.dtype);
  Tensor wrong = out.d_log_decay.tensor;
  wrong.size[2] = 1;
  const auto gradient = [&](const Case& of, const Tensor& to) -> std::string {
    const Instance call(of);
    try {
      attention_backward(call.inputs(), call.config(),
                         out.backward_inputs(call.d_o.tensor),
                         {.d_log_decay = to});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(gradient(c, wrong),
            "[attention_backward] d_log_decay size[2] 1 != 200 as in its "
            "input");
  c.decay = Decay::kAbsent;
  EXPECT_EQ(gradient(c, out.d_log_decay.tensor),
            "[attention_backward] d_log_decay without log_decay");
  for_each_index(instance.k.tensor.size,
                 [&](const Extents& x) { instance.k.set(x, 1e10); });
  EXPECT_EQ(message_of(instance.inputs(), instance.config(), out),
            "[attention_forward] features of x^4/sqrt(N) overflow f32, and "
            "with decay there is no dense path; compute in f64, or make q and "
            "k smaller");
}

}  // namespace
}  // namespace polyattn::test
