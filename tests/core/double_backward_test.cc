// The kernel of the double backward against its twin, within the error that
// rounding can explain.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/compare_outputs.h"
#include "core/double_bound.h"
#include "core/double_cases.h"

namespace polyattn::test {
namespace {

DoubleOutputs run(DoubleInstance& twin, DType storage, Parallel& parallel) {
  DoubleOutputs out = twin.outputs(storage);
  const AttentionInputs in = twin.instance.inputs();
  const AttentionConfig config = twin.instance.config();
  const AttentionDoubleInputs second = twin.inputs();
  std::vector<std::byte> workspace(attention_double_backward_workspace(
      in, config, second, out.gradients(), parallel.workers()));
  attention_double_backward(in, config, second, out.gradients(), workspace,
                            parallel);
  return out;
}

DoubleOutputs run(DoubleInstance& twin, DType storage) {
  SerialParallel serial;
  return run(twin, storage, serial);
}

void expect_within(const DoubleOutputs& got, const DoubleOutputs& want,
                   const DoubleOutputs& bound) {
  test::expect_within("d_o", got.d_o, want.d_o, bound.d_o);
  test::expect_within("dq", got.dq, want.dq, bound.dq);
  test::expect_within("dk", got.dk, want.dk, bound.dk);
  test::expect_within("dv", got.dv, want.dv, bound.dv);
  test::expect_within("d_bias", got.d_bias, want.d_bias, bound.d_bias);
  for (const Buffer* b : {&got.d_o, &got.dq, &got.dk, &got.dv, &got.d_bias})
    EXPECT_TRUE(b->padding_untouched());
}

void expect_same(const DoubleOutputs& a, const DoubleOutputs& b) {
  EXPECT_TRUE(same_bits(a.d_o, b.d_o)) << "d_o";
  EXPECT_TRUE(same_bits(a.dq, b.dq)) << "dq";
  EXPECT_TRUE(same_bits(a.dk, b.dk)) << "dk";
  EXPECT_TRUE(same_bits(a.dv, b.dv)) << "dv";
  EXPECT_TRUE(same_bits(a.d_bias, b.d_bias)) << "d_bias";
}

void expect_right(const Case& c, const std::vector<std::string>& targets) {
  SCOPED_TRACE(::testing::PrintToString(c));
  DoubleInstance twin(c);
  const DoubleOutputs want = twin.reference();
  const DoubleOutputs bound = double_bound(twin, c.dtype);
  for_each_target(targets, [&](const std::string&) {
    expect_within(run(twin, c.dtype), want, bound);
  });
}

class DoubleBackward : public EveryFormula {};

INSTANTIATE_TEST_SUITE_P(Formula, DoubleBackward,
                         ::testing::Range(0, kFormulaCount));

TEST_P(DoubleBackward, EveryStructureTypeAndTarget) {
  for (const Case& c : structure_cases(GetParam()))
    expect_right(c, supported_targets());
}

TEST_P(DoubleBackward, TheBoundIsSharp) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    DoubleInstance twin(Case{.n = 63,
                             .m = 97,
                             .d = 16,
                             .e = 16,
                             .formula = formula(),
                             .bias = Extra::kFull,
                             .dtype = type,
                             .compute = type});
    const DoubleOutputs want = twin.reference();
    const DoubleOutputs bound = double_bound(twin, type);
    const double ratio = type == DType::kF32 ? 0x1p-8 : 0x1p-37;
    expect_sharp("d_o", want.d_o, bound.d_o, ratio);
    expect_sharp("dq", want.dq, bound.dq, ratio);
    expect_sharp("dk", want.dk, bound.dk, ratio);
    expect_sharp("dv", want.dv, bound.dv, ratio);
    expect_sharp("d_bias", want.d_bias, bound.d_bias, ratio);
  }
}

// The longer pairs, where tiles run at once, are for a few formulas.
TEST_P(DoubleBackward, AwkwardShapes) {
  for (const Case& c : awkward_cases(GetParam())) {
    const bool few = GetParam() == 0 || GetParam() == 4;
    if (c.n * c.m < 20000 || few) expect_right(c, targets_for(c));
  }
}

TEST_P(DoubleBackward, RowsLongerThanABlock) {
  Case c{.heads = 4,
         .kv_heads = 2,
         .n = 150,
         .m = 523,
         .d = 5,
         .e = 3,
         .formula = formula(),
         .bias = Extra::kPadding};
  if (GetParam() % 2 == 0) c.causal = Causal::kLast;
  if (GetParam() % 3 == 0) c.dropout = 0.2;
  if (GetParam() % 4 >= 2) c.window = {90, 25};
  expect_right(c, targets_for(c));
}

TEST_P(DoubleBackward, ThreadsDoNotChangeABit) {
  for (const bool grid : {false, true}) {
    Case c{.batch = 4, .heads = 4, .kv_heads = 2, .n = 19, .m = 35};
    if (grid) c.batch = 1, c.n = 300, c.m = 280, c.causal = Causal::kFirst;
    c.formula = formula();
    c.bias = grid ? Extra::kRows : Extra::kCycle;
    SCOPED_TRACE(::testing::PrintToString(c));
    DoubleInstance twin(c);
    const DoubleOutputs want = run(twin, c.dtype);
    for (const int workers : {2, 7}) {
      ThreadParallel parallel(workers, TaskOrder::kShuffled);
      expect_same(run(twin, c.dtype, parallel), want);
    }
  }
}

// Any gradients may be asked for, and those that are come out as in all.
TEST_P(DoubleBackward, EverySubsetOfTheGradients) {
  DoubleInstance twin(Case{.heads = 4,
                           .kv_heads = 2,
                           .n = 50,
                           .m = 140,
                           .d = 9,
                           .e = 21,
                           .formula = formula(),
                           .causal = Causal::kLast,
                           .bias = Extra::kHeads,
                           .strided = true});
  const DoubleOutputs all = run(twin, DType::kF32);
  SerialParallel serial;
  for (int wanted = 0; wanted < 32; ++wanted) {
    SCOPED_TRACE(wanted);
    DoubleOutputs out = twin.outputs(DType::kF32);
    const DoubleOutputs fresh = twin.outputs(DType::kF32);
    AttentionDoubleGradients gradients = out.gradients();
    if (!(wanted & 1)) gradients.d_o.reset();
    if (!(wanted & 2)) gradients.dq.reset();
    if (!(wanted & 4)) gradients.dk.reset();
    if (!(wanted & 8)) gradients.dv.reset();
    if (!(wanted & 16)) gradients.d_bias.reset();
    attention_double_backward(twin.instance.inputs(), twin.instance.config(),
                              twin.inputs(), gradients, serial);
    EXPECT_TRUE(same_bits(out.d_o, (wanted & 1 ? all : fresh).d_o));
    EXPECT_TRUE(same_bits(out.dq, (wanted & 2 ? all : fresh).dq));
    EXPECT_TRUE(same_bits(out.dk, (wanted & 4 ? all : fresh).dk));
    EXPECT_TRUE(same_bits(out.dv, (wanted & 8 ? all : fresh).dv));
    EXPECT_TRUE(same_bits(out.d_bias, (wanted & 16 ? all : fresh).d_bias));
  }
}

// What is absent counts as zero, in the twin and in the kernel.
TEST_P(DoubleBackward, EverySubsetOfTheCotangents) {
  const Case c{.batch = 2,
               .heads = 2,
               .n = 20,
               .m = 30,
               .formula = formula(),
               .bias = Extra::kHeads};
  DoubleInstance twin(c);
  const DoubleOutputs bound = double_bound(twin, c.dtype);
  SerialParallel serial;
  for (int given = 0; given < 16; ++given) {
    SCOPED_TRACE(given);
    AttentionDoubleInputs second = twin.inputs();
    if (!(given & 1)) second.uq.reset();
    if (!(given & 2)) second.uk.reset();
    if (!(given & 4)) second.uv.reset();
    if (!(given & 8)) second.u_bias.reset();
    DoubleOutputs want = twin.outputs(DType::kF64), got = twin.outputs(c.dtype);
    const AttentionInputs in = twin.instance.inputs();
    const AttentionConfig config = twin.instance.config();
    reference_double_backward(in, config, second, want.gradients());
    attention_double_backward(in, config, second, got.gradients(), serial);
    // Errors of fewer terms are smaller; a bound for all will do.
    expect_within(got, want, bound);
  }
}

// Without d_o: forward mode.
TEST_P(DoubleBackward, TheTangentOfTheOutputAlone) {
  DoubleInstance twin(Case{.n = 40, .m = 50, .formula = formula()});
  const DoubleOutputs all = run(twin, DType::kF32);
  DoubleOutputs out = twin.outputs(DType::kF32);
  AttentionDoubleInputs second = twin.inputs();
  second.d_o.reset();
  SerialParallel serial;
  attention_double_backward(twin.instance.inputs(), twin.instance.config(),
                            second, {.d_o = out.d_o.tensor}, serial);
  EXPECT_TRUE(same_bits(out.d_o, all.d_o));
}

void expect_error(
    const std::string& want, const Case& c,
    const std::function<void(AttentionConfig&, AttentionDoubleInputs&,
                             AttentionDoubleGradients&)>& spoil) {
  SCOPED_TRACE(want);
  DoubleInstance twin(c);
  DoubleOutputs out = twin.outputs(c.dtype);
  AttentionConfig config = twin.instance.config();
  AttentionDoubleInputs second = twin.inputs();
  AttentionDoubleGradients gradients = out.gradients();
  spoil(config, second, gradients);
  SerialParallel serial;
  try {
    attention_double_backward(twin.instance.inputs(), config, second, gradients,
                              serial);
    FAIL() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ("[attention_double_backward] " + want, error.what());
  }
  expect_same(out, twin.outputs(c.dtype));
}

TEST(DoubleBackwardErrors, NameTheArgumentAndBothValues) {
  using C = AttentionConfig;
  using S = AttentionDoubleInputs;
  using G = AttentionDoubleGradients;
  const Case c{.n = 5, .m = 7, .d = 4, .e = 3, .bias = Extra::kFull};
  expect_error("rows length 4 != B * H * N 5", c,
               [](C&, S& s, G&) { s.rows = s.rows.first(4); });
  expect_error("uq size[2] 7 != 5 as in its input", c,
               [](C&, S& s, G&) { s.uq = s.uk; });
  expect_error("uk size[2] 5 != 7 as in its input", c,
               [](C&, S& s, G&) { s.uk = s.uq; });
  expect_error("uv size[3] 4 != 3 as in its input", c,
               [](C&, S& s, G&) { s.uv = s.uk; });
  expect_error("u_bias size[3] 4 != 7 as in its input", c,
               [](C&, S& s, G&) { s.u_bias = s.uq; });
  expect_error("d_o size[3] 4 != 3 as in the output [B, H, N, E]", c,
               [](C&, S& s, G&) { s.d_o = s.uq; });
  expect_error("gradient of d_o size[3] 4 != 3 as in the output [B, H, N, E]",
               c, [](C&, S&, G& g) { g.d_o = g.dq; });
  expect_error("dq size[2] 7 != 5 as in its input", c,
               [](C&, S&, G& g) { g.dq = g.dk; });
  expect_error("dq, dk, dv or d_bias wanted without d_o", c,
               [](C&, S& s, G&) { s.d_o.reset(); });
  expect_error("path linear: there is only the dense one", c,
               [](C& config, S&, G&) {
                 config.activation = Activation::parse("x^2");
                 config.path = Path::kLinear;
               });
  const Case without{.n = 5, .m = 7, .d = 4, .e = 3};
  expect_error("u_bias without a bias", without,
               [](C&, S& s, G&) { s.u_bias = s.uq; });
  expect_error("d_bias without a bias", without,
               [](C&, S&, G& g) { g.d_bias = g.dq; });
}

TEST(DoubleBackwardErrors, DecayIsRefused) {
  DoubleInstance twin(Case{.formula = "x^2", .causal = Causal::kFirst});
  DoubleOutputs out = twin.outputs(DType::kF32);
  const float log_decay = -1;
  AttentionInputs in = twin.instance.inputs();
  in.log_decay =
      ConstTensor{&log_decay, DType::kF32, {1, 1, 1, 1}, {1, 1, 1, 1}};
  AttentionConfig config = twin.instance.config();
  config.path = Path::kAuto;
  SerialParallel serial;
  EXPECT_THROW(attention_double_backward(in, config, twin.inputs(),
                                         out.gradients(), serial),
               std::invalid_argument);
  expect_same(out, twin.outputs(DType::kF32));
}

TEST(DoubleBackwardErrors, AWorkspaceThatIsTooSmall) {
  DoubleInstance twin(Case{});
  DoubleOutputs out = twin.outputs(DType::kF32);
  std::byte one{};
  SerialParallel serial;
  EXPECT_THROW(attention_double_backward(twin.instance.inputs(),
                                         twin.instance.config(), twin.inputs(),
                                         out.gradients(), {&one, 1}, serial),
               std::invalid_argument);
  expect_same(out, twin.outputs(DType::kF32));
}

}  // namespace
}  // namespace polyattn::test
