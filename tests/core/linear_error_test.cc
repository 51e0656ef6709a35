// What the linear path does with calls that it cannot serve, or not with what
// it was given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/linear_cases.h"
#include "support/message_of.h"

namespace polyattn::test {
namespace {

// k^3 is beyond f32, and q k is 1 at most.
TEST(LinearErrors, FeaturesThatOverflowAreReported) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst}) {
    Case c{.n = 120,
           .m = 120,
           .d = 3,
           .e = 4,
           .formula = "x^3/N",
           .causal = causal,
           .path = Path::kLinear,
           .chunk = 48};
    const auto stretch = [](Instance& instance) {
      for_each_index(instance.k.tensor.size, [&](const Extents& x) {
        instance.k.set(x, 1e13 * at(instance.k.tensor, x));
        instance.q.set(x, 1e-13 * at(instance.q.tensor, x));
      });
    };
    Instance linear(c);
    stretch(linear);
    c.path = Path::kDense;
    Instance dense(c);
    stretch(dense);
    const Outputs want = dense.reference();
    const Outputs bound = error_bound(dense, want, c.dtype);
    const Outputs forward = run_linear(dense, c.dtype);
    expect_within("dense o", forward.o, want.o, bound.o);
    for_each_target(supported_targets(), [&](const std::string&) {
      SerialParallel serial;
      Outputs out = linear.outputs(c.dtype);
      const auto message = message_of<std::overflow_error>;
      const std::string rest =
          " features of x^3/N overflow f32 on the linear path; take the dense "
          "path, compute in f64, or make q and k smaller";
      EXPECT_EQ(message([&] {
                  run_forward(linear, {out.o.tensor, out.rows, {}}, serial);
                }),
                "[attention_forward]" + rest);
      EXPECT_EQ(message([&] {
                  run_backward(linear, forward, out.gradients(), serial);
                }),
                "[attention_backward]" + rest);
    });
  }
}

// Counts the tasks of a call: those of another path are others.
class CountingParallel final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(std::int64_t count, TaskBody body) override {
    tasks += count;
    serial_.run(count, body);
  }
  std::int64_t tasks = 0;

 private:
  SerialParallel serial_;
};

struct Taken {
  Path forward, backward;
  std::int64_t forward_tasks, backward_tasks;
  bool operator==(const Taken&) const = default;
};

Taken taken_by(const Instance& instance, Path path) {
  AttentionConfig config = instance.config();
  config.path = path;
  const AttentionInputs in = instance.inputs();
  Outputs out = instance.outputs(DType::kF32);
  std::vector<std::byte> room(
      std::max(attention_forward_workspace(in, config, 1),
               attention_backward_workspace(in, config, 1)));
  CountingParallel forward, backward;
  Taken taken{};
  taken.forward = attention_forward(in, config, {out.o.tensor, out.rows, {}},
                                    room, forward);
  taken.backward =
      attention_backward(in, config, out.backward_inputs(instance.d_o.tensor),
                         out.gradients(), room, backward);
  taken.forward_tasks = forward.tasks, taken.backward_tasks = backward.tasks;
  return taken;
}

// Long enough that it is linear by choice.
Case long_case(Causal causal) {
  return {.n = 1500,
          .m = 1500,
          .d = 3,
          .e = 4,
          .formula = "x^3/N",
          .causal = causal};
}

// One NaN must not make a call quadratic.
TEST(LinearErrors, InputsThatAreNotFiniteStayLinear) {
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    const Taken want = taken_by(Instance(long_case(causal)), Path::kLinear);
    const Taken dense = taken_by(Instance(long_case(causal)), Path::kDense);
    ASSERT_NE(want.forward_tasks, dense.forward_tasks);
    ASSERT_NE(want.backward_tasks, dense.backward_tasks);
    EXPECT_EQ(taken_by(Instance(long_case(causal)), Path::kAuto), want);
    for (const double bad : {kNaN, kInf, -kInf}) {
      for (Buffer Instance::*input :
           {&Instance::q, &Instance::k, &Instance::v, &Instance::d_o}) {
        Instance instance(long_case(causal));
        (instance.*input).set({0, 0, 700, 1}, bad);
        EXPECT_EQ(taken_by(instance, Path::kAuto), want);
      }
    }
  }
}

TEST(LinearErrors, FeaturesThatOverflowGoDenseByChoice) {
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    Instance instance(long_case(causal));
    for_each_index(instance.k.tensor.size, [&](const Extents& x) {
      instance.k.set(x, 1e13 * at(instance.k.tensor, x));
      instance.q.set(x, 1e-13 * at(instance.q.tensor, x));
    });
    const Taken taken = taken_by(instance, Path::kAuto);
    EXPECT_EQ(taken.forward, Path::kDense);
    EXPECT_EQ(taken.backward, Path::kDense);
  }
}

TEST(LinearErrors, CallsWithoutALinearPathAreRefused) {
  const auto message = [](Case c) {
    c.path = Path::kLinear;
    const Instance instance(c);
    Outputs out = instance.outputs(c.dtype);
    const Outputs fresh = instance.outputs(c.dtype);
    const std::string forward = message_of<std::invalid_argument>([&] {
      attention_forward(instance.inputs(), instance.config(),
                        {out.o.tensor, out.rows, {}});
    });
    const std::string backward = message_of<std::invalid_argument>([&] {
      attention_backward(instance.inputs(), instance.config(),
                         fresh.backward_inputs(instance.d_o.tensor),
                         out.gradients());
    });
    expect_same_bits(out, fresh);
    EXPECT_TRUE(contains(forward, "[attention_forward] "));
    EXPECT_TRUE(contains(backward, "[attention_backward] "));
    EXPECT_THROW(
        attention_forward_workspace(instance.inputs(), instance.config(), 1),
        std::invalid_argument);
    return forward;
  };
  const auto says = [&](const Case& c, const std::string& what) {
    const std::string text = message(c);
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  says({.formula = "softmax"}, "softmax is not a polynomial");
  says({.formula = "x^3/sum"}, "has weights of both signs");
  says({.formula = "x", .bias = Extra::kFull}, "a bias is added");
  says({.formula = "x", .mask = Extra::kFull}, "the mask differs from row");
}

struct Room {
  explicit Room(const Case& c)
      : instance(c),
        out(instance.outputs(c.dtype)),
        fresh(instance.outputs(c.dtype)) {
    forward.resize(
        attention_forward_workspace(instance.inputs(), instance.config(), 1));
    backward.resize(
        attention_backward_workspace(instance.inputs(), instance.config(), 1));
  }
  void run(std::span<std::byte> room) {
    attention_forward(instance.inputs(), instance.config(),
                      {out.o.tensor, out.rows, {}}, room, serial);
  }
  void run_back(std::span<std::byte> room) {
    attention_backward(instance.inputs(), instance.config(),
                       fresh.backward_inputs(instance.d_o.tensor),
                       out.gradients(), room, serial);
  }

  Instance instance;
  Outputs out, fresh;
  std::vector<std::byte> forward, backward;
  SerialParallel serial;
};

TEST(LinearErrors, AWorkspaceTooSmallIsRefused) {
  for (const Causal causal : {Causal::kNone, Causal::kLast}) {
    Room room(Case{.n = 50,
                   .m = 60,
                   .formula = "x^3/N",
                   .causal = causal,
                   .path = Path::kLinear});
    const std::span forward(room.forward), backward(room.backward);
    EXPECT_THROW(room.run(forward.first(forward.size() - 1)),
                 std::invalid_argument);
    EXPECT_THROW(room.run_back(backward.first(backward.size() - 1)),
                 std::invalid_argument);
    expect_same_bits(room.out, room.fresh);
    EXPECT_NO_THROW(room.run(forward));
  }
}

TEST(LinearErrors, AWorkspaceOfAnyAlignmentServes) {
  const Case c{.n = 90,
               .m = 100,
               .formula = "x^3/N",
               .causal = Causal::kLast,
               .path = Path::kLinear,
               .chunk = 48};
  const Outputs want = run_linear(Instance(c), c.dtype);
  for (const std::size_t off : {1, 8, 33}) {
    Room room(c);
    std::vector<std::byte> bytes(off + room.forward.size());
    room.run(std::span(bytes).subspan(off));
    EXPECT_EQ(room.out.o.bytes, want.o.bytes);
  }
}

// A call that wants statistics is dense, by name of the linear path too: its
// workspace must do for that.
TEST(LinearErrors, StatisticsComeFromTheDensePath) {
  Case c{.heads = 4,
         .kv_heads = 2,
         .n = 300,
         .m = 300,
         .d = 1,
         .e = 1,
         .formula = "x/N",
         .dtype = DType::kBF16,
         .chunk = 48};
  const Instance dense(c);
  c.path = Path::kLinear;
  const Instance linear(c);
  ASSERT_GE(attention_forward_workspace(linear.inputs(), linear.config(), 1),
            attention_forward_workspace(dense.inputs(), dense.config(), 1));
  SerialParallel serial;
  Outputs want = dense.outputs(c.dtype), got = linear.outputs(c.dtype);
  run_forward(dense, want.results(), serial);
  run_forward(linear, got.results(), serial);
  expect_same_bits(got, want);
  EXPECT_EQ(got.stats[1].jacobian_sq, want.stats[1].jacobian_sq);
}

// Without queries a mask may have no memory behind it, and repeat it for ever.
TEST(LinearErrors, AMaskWithoutRowsIsNotRead) {
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    const Case c{.n = 0,
                 .m = 9,
                 .formula = "x/N",
                 .causal = causal,
                 .path = Path::kLinear};
    const Instance instance(c);
    Outputs out = instance.outputs(c.dtype);
    AttentionInputs in = instance.inputs();
    in.mask = ConstMask{nullptr, {1, 1, 0, c.m}, {0, 0, 0, 1}};
    try {
      attention_forward(in, instance.config(), {out.o.tensor, out.rows, {}});
      attention_backward(in, instance.config(),
                         out.backward_inputs(instance.d_o.tensor),
                         out.gradients());
    } catch (const std::invalid_argument& refused) {
      EXPECT_NE(std::string(refused.what()).find("mask"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace polyattn::test
