// The definition of decay: by hand, by finite differences, and by other calls
// that say the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/finite_difference.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

const std::vector<std::string> kPolynomials = {
    "x/sqrt(N)", "x^3/N", "1 + x + x^2/2", "x^2/sum", "-x^3/sum"};

// Keys 1, 2, 3 at width 1, factors 1/2 and 1/4 of the last two, a query of 1 at
// each of them.
TEST(DecayReference, RowsByHand) {
  const std::vector<double> q = {1, 1, 1}, k = {1, 2, 3}, v = {5, 7, 11};
  const std::vector<double> log_decay = {-3, std::log(0.5), std::log(0.25)};
  const auto run = [&](const char* formula) {
    const Extents size = {1, 1, 3, 1};
    AttentionInputs in;
    in.q = view(q.data(), size), in.k = view(k.data(), size);
    in.v = view(v.data(), size), in.log_decay = view(log_decay.data(), size);
    AttentionConfig config;
    config.activation = Activation::parse(formula);
    config.causal = Causal::kFirst;
    std::vector<double> o(3, kNaN);
    reference_forward(in, config, {view(o.data(), size), {}, {}});
    return o;
  };
  const double last = 5 / 8.0 + 2 * 7 / 4.0 + 3 * 11;
  const std::vector<double> one = run("x");
  EXPECT_DOUBLE_EQ(one[0], 5);
  EXPECT_DOUBLE_EQ(one[1], 5 / 2.0 + 2 * 7);
  EXPECT_DOUBLE_EQ(one[2], last);
  EXPECT_DOUBLE_EQ(run("x/N")[2], last / (1 + 1 / 16.0 + 1 / 64.0));
  EXPECT_DOUBLE_EQ(run("x/sqrt(N)")[1], (5 / 2.0 + 2 * 7) / std::sqrt(1.25));
  EXPECT_DOUBLE_EQ(run("x/sum")[2], last / (1 / 8.0 + 2 / 4.0 + 3));
}

TEST(DecayReference, GradientsAreFiniteDifferences) {
  for (const std::string& formula : kPolynomials) {
    for (int turn = 0; turn < 6; ++turn) {
      Case c{.n = 4,
             .m = 5,
             .d = 2,
             .e = 2,
             .formula = formula,
             .causal = turn % 2 == 0 ? Causal::kFirst : Causal::kLast,
             .dtype = DType::kF64,
             .path = Path::kAuto,
             .decay = turn % 3 == 0 ? Decay::kHeads : Decay::kGates};
      if (turn == 1) c.batch = 2, c.heads = 4, c.kv_heads = 2;
      if (turn == 2) c.batch = 2, c.mask = Extra::kPadding;
      if (turn == 4) c.q_lengths = {2, 0, 4}, c.k_lengths = {3, 2, 3};
      if (turn == 5) c.batch = 2, c.decay = Decay::kShared;
      SCOPED_TRACE(::testing::PrintToString(c));
      Instance instance(c);
      for_each_index(instance.log_decay.tensor.size, [&](const Extents& x) {
        const double value = at(instance.log_decay.tensor, x);
        if (value > -0.01) instance.log_decay.set(x, -0.3);  // room for a step
      });
      const Outputs out = instance.reference();
      expect_gradient(instance, instance.q, out.dq.tensor);
      expect_gradient(instance, instance.k, out.dk.tensor);
      expect_gradient(instance, instance.v, out.dv.tensor);
      for_each_index(instance.log_decay.tensor.size, [&](const Extents& x) {
        if (at(instance.log_decay.tensor, x) == -kInf) {
          EXPECT_EQ(at(out.d_log_decay.tensor, x), 0);
          instance.log_decay.set(x, -0.5);
        }
      });
      const Outputs open = instance.reference();
      expect_gradient(instance, instance.log_decay, open.d_log_decay.tensor);
    }
  }
}

// Row i of o and of each gradient that has such a row, against row i + shift.
void expect_same_rows(const Buffer& part, const Buffer& whole,
                      std::int64_t shift) {
  for_each_index(part.tensor.size, [&](const Extents& x) {
    const double want = at(whole.tensor, {x[0], x[1], x[2] + shift, x[3]});
    EXPECT_NEAR(at(part.tensor, x), want, 1e-13 * (1 + std::fabs(want)));
  });
}

// From a factor of 0 on it is as if the text began there.
TEST(DecayReference, AFactorOfZeroBeginsAnew) {
  constexpr std::int64_t kReset = 4;
  for (const std::string& formula : kPolynomials) {
    Case c{.n = 9,
           .m = 9,
           .formula = formula,
           .causal = Causal::kFirst,
           .dtype = DType::kF64,
           .path = Path::kAuto,
           .decay = Decay::kGates};
    Instance whole(c);
    whole.log_decay.set({0, 0, kReset, 0}, -kInf);
    c.n = c.m = 9 - kReset;
    Instance part(c);
    const auto copy = [&](Buffer& to, const Buffer& from) {
      for_each_index(to.tensor.size, [&](const Extents& x) {
        to.set(x, at(from.tensor, {x[0], x[1], x[2] + kReset, x[3]}));
      });
    };
    copy(part.q, whole.q), copy(part.k, whole.k), copy(part.v, whole.v);
    copy(part.d_o, whole.d_o), copy(part.log_decay, whole.log_decay);
    const Outputs a = part.reference(), b = whole.reference();
    expect_same_rows(a.o, b.o, kReset);
    expect_same_rows(a.dk, b.dk, kReset);
    expect_same_rows(a.d_log_decay, b.d_log_decay, kReset);
  }
}

// A key that the mask removes may as well not be there, factor and all.
TEST(DecayReference, PaddingIsNoTime) {
  for (const std::string& formula : kPolynomials) {
    const Case c{.n = 1,
                 .m = 8,
                 .formula = formula,
                 .causal = Causal::kLast,
                 .mask = Extra::kPadding,
                 .dtype = DType::kF64,
                 .path = Path::kAuto,
                 .decay = Decay::kGates};
    Instance with(c);
    with.mask = {1, 1, 0, 1, 1, 0, 0, 1};
    Case less = c;
    less.m = 5, less.mask = Extra::kAbsent;
    Instance without(less);
    const std::vector<std::int64_t> kept = {0, 1, 3, 4, 7};
    const auto copy = [&](Buffer& to, const Buffer& from, bool rows) {
      for_each_index(to.tensor.size, [&](const Extents& x) {
        const auto i = static_cast<std::size_t>(x[2]);
        to.set(x, at(from.tensor, {0, 0, rows ? kept[i] : x[2], x[3]}));
      });
    };
    copy(without.q, with.q, false), copy(without.k, with.k, true);
    copy(without.v, with.v, true), copy(without.d_o, with.d_o, false);
    copy(without.log_decay, with.log_decay, true);
    expect_same_rows(without.reference().o, with.reference().o, 0);
  }
}

// A factor of 1 is no decay.
TEST(DecayReference, NothingFadesWithoutDecay) {
  for (const std::string& formula : kPolynomials) {
    Case c{.n = 6,
           .m = 7,
           .formula = formula,
           .causal = Causal::kLast,
           .dtype = DType::kF64,
           .path = Path::kAuto,
           .decay = Decay::kHeads};
    Instance decays(c);
    decays.log_decay.set({0, 0, 0, 0}, 0);
    c.decay = Decay::kAbsent;
    const Outputs a = decays.reference(), b = Instance(c).reference();
    expect_same_rows(a.o, b.o, 0);
    expect_same_rows(a.dq, b.dq, 0);
    expect_same_rows(a.dv, b.dv, 0);
  }
}

}  // namespace
}  // namespace polyattn::test
