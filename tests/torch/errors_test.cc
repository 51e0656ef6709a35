// Every message of the op, word for word.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <exception>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "polyattn/torch/attention.h"
#include "torch/dispatch.h"
#include "torch/tensors.h"

namespace polyattn {
namespace errors_test {

using test::kInf;
using test::kNaN;

using Options = AttentionOptions;

// A call that is right until a test spoils it.
struct Arguments {
  at::Tensor q = at::ones({2, 4, 3, 6});
  at::Tensor k = at::ones({2, 4, 5, 6});
  at::Tensor v = at::ones({2, 4, 5, 7});
  Options options;
};

struct Refused {
  const char* message;
  std::function<void(Arguments&)> spoil;
};

// The message without the stack, or "" if there was no error.
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return std::string("not a c10::Error: ") + error.what();
  }
  return "";
}

void expect_refused(const std::vector<Refused>& list) {
  EXPECT_EQ(message_of([] {
              const Arguments a;
              attention(a.q, a.k, a.v, a.options);
            }),
            "");
  for (const Refused& each : list) {
    Arguments a;
    each.spoil(a);
    EXPECT_EQ(message_of([&] { attention(a.q, a.k, a.v, a.options); }),
              each.message);
    EXPECT_EQ(
        message_of([&] { attention_with_norms(a.q, a.k, a.v, a.options); }),
        each.message);
  }
}

TEST(Errors, Tensors) {
  expect_refused({
      {"[attention] key is an undefined tensor",
       [](Arguments& a) { a.k = at::Tensor(); }},
      {"[attention] query is an undefined tensor",
       [](Arguments& a) { a.q = at::Tensor(); }},
      {"[attention] query is an undefined tensor",
       [](Arguments& a) { a.q = a.k = a.v = at::Tensor(); }},
      {"[attention] query has layout Sparse, not strided",
       [](Arguments& a) { a.q = a.q.to_sparse(); }},
      {"[attention] value has layout Sparse, not strided",
       [](Arguments& a) { a.v = a.v.to_sparse(); }},
      {"[attention] query has type Long, which is not floating point",
       [](Arguments& a) { a.q = a.q.to(at::kLong); }},
      {"[attention] key has type ComplexFloat, which is not floating point",
       [](Arguments& a) { a.k = a.k.to(at::kComplexFloat); }},
      {"[attention] query has 1 dimensions, fewer than 2",
       [](Arguments& a) { a.q = at::ones({6}); }},
      {"[attention] value has 0 dimensions, fewer than 2",
       [](Arguments& a) { a.v = at::ones({}); }},
      {"[attention] key has type Double != Float of query",
       [](Arguments& a) { a.k = a.k.to(at::kDouble); }},
      {"[attention] value has type Float != BFloat16 of query",
       [](Arguments& a) {
         a.q = a.q.to(at::kBFloat16), a.k = a.k.to(at::kBFloat16);
       }},
      {"[attention] key is on meta, query on cpu",
       [](Arguments& a) { a.k = a.k.to(at::kMeta); }},
      {"[attention] key is on cpu, query on meta",
       [](Arguments& a) { a.q = a.q.to(at::kMeta); }},
  });
}

TEST(Errors, Sizes) {
  const auto size = [](at::IntArrayRef sizes) { return at::ones(sizes); };
  expect_refused({
      {"[attention] key width 8 != query width 6",
       [&](Arguments& a) {
         a.k = size({2, 4, 5, 8});
       }},
      {"[attention] value rows 9 != key rows 5",
       [&](Arguments& a) {
         a.v = size({2, 4, 9, 7});
       }},
      {"[attention] key heads 2 != query heads 4; grouped heads need "
       "enable_gqa",
       [&](Arguments& a) {
         a.k = size({2, 2, 5, 6}), a.v = size({2, 2, 5, 7});
       }},
      {"[attention] value heads 3 != query heads 4; grouped heads need "
       "enable_gqa",
       [&](Arguments& a) {
         a.v = size({2, 3, 5, 7});
       }},
      {"[attention] value heads 4 != key heads 2",
       [&](Arguments& a) {
         a.options.gqa(true), a.k = size({2, 2, 5, 6});
       }},
      {"[attention] query heads 4 is not a multiple of key heads 3",
       [&](Arguments& a) {
         a.options.gqa(true);
         a.k = size({2, 3, 5, 6}), a.v = size({2, 3, 5, 7});
       }},
      {"[attention] query heads 4 is not a multiple of key heads 0",
       [&](Arguments& a) {
         a.options.gqa(true);
         a.k = size({2, 0, 5, 6}), a.v = size({2, 0, 5, 7});
       }},
      {"[attention] batch [3] of key does not broadcast with [2] of query",
       [&](Arguments& a) {
         a.k = size({3, 4, 5, 6});
       }},
      {"[attention] batch [5, 3] of value does not broadcast with [2] of query",
       [&](Arguments& a) {
         a.v = size({5, 3, 4, 5, 7});
       }},
  });
}

TEST(Errors, Masks) {
  const auto mask = [](Arguments& a, const at::Tensor& t) {
    a.options.mask(t);
  };
  expect_refused({
      {"[attention] attn_mask has layout Sparse, not strided",
       [&](Arguments& a) {
         mask(a, at::ones({3, 5}).to_sparse());
       }},
      {"[attention] attn_mask has type Int, neither bool nor floating point",
       [&](Arguments& a) {
         mask(a, at::ones({3, 5}, at::kInt));
       }},
      {"[attention] attn_mask is on meta, query on cpu",
       [&](Arguments& a) {
         mask(a, at::ones({3, 5}, at::kMeta));
       }},
      {"[attention] attn_mask of size [3, 4] does not broadcast to [2, 4, 3, "
       "5]",
       [&](Arguments& a) {
         mask(a, at::ones({3, 4}));
       }},
      {"[attention] attn_mask of size [3, 1, 3, 5] does not broadcast to [2, "
       "4, 3, 5]",
       [&](Arguments& a) {
         mask(a, at::ones({3, 1, 3, 5}, at::kBool));
       }},
      {"[attention] attn_mask of size [1, 2, 4, 3, 5] does not broadcast to "
       "[2, 4, 3, 5]",
       [&](Arguments& a) {
         mask(a, at::ones({1, 2, 4, 3, 5}));
       }},
  });
}

TEST(Errors, Bias) {
  expect_refused({
      {"[attention] bias has type Bool: a bool mask is attn_mask",
       [](Arguments& a) {
         a.options.bias(at::ones({3, 5}, at::kBool));
       }},
      {"[attention] bias has type Int, which is not floating point",
       [](Arguments& a) {
         a.options.bias(at::ones({3, 5}, at::kInt));
       }},
      {"[attention] bias has layout Sparse, not strided",
       [](Arguments& a) {
         a.options.bias(at::ones({3, 5}).to_sparse());
       }},
      {"[attention] bias is on meta, query on cpu",
       [](Arguments& a) {
         a.options.bias(at::ones({3, 5}, at::kMeta));
       }},
      {"[attention] bias of size [2, 3, 5] does not broadcast to [2, 4, 3, 5]",
       [](Arguments& a) {
         a.options.mask(at::ones({3, 5}, at::kBool)).bias(at::ones({2, 3, 5}));
       }},
  });
}

TEST(Errors, Coefficients) {
  const auto coefficients = [](Arguments& a, const at::Tensor& t) {
    a.options.activation("x^3/sqrt(N)").coefficients(t);
  };
  expect_refused({
      {"[attention] coefficients are for polynomials, not for softmax",
       [](Arguments& a) { a.options.coefficients(at::ones({4})); }},
      {"[attention] coefficients are for polynomials, not for relu^2/N",
       [](Arguments& a) {
         a.options.activation("relu(x)^2 / N").coefficients(at::ones({4}));
       }},
      {"[attention] coefficients have type Long, which is not floating point",
       [&](Arguments& a) { coefficients(a, at::ones({4}, at::kLong)); }},
      {"[attention] coefficients are on meta, query on cpu",
       [&](Arguments& a) { coefficients(a, at::ones({4}, at::kMeta)); }},
      {"[attention] coefficients of size [] are neither [P + 1] nor [H, P + 1]",
       [&](Arguments& a) { coefficients(a, at::ones({})); }},
      {"[attention] coefficients of size [1, 4, 4] are neither [P + 1] nor [H, "
       "P + 1]",
       [&](Arguments& a) {
         coefficients(a, at::ones({1, 4, 4}));
       }},
      {"[attention] coefficients for 2 heads, query has 4",
       [&](Arguments& a) {
         coefficients(a, at::ones({2, 4}));
       }},
      {"[attention] 0 coefficients, not 1 to 9",
       [&](Arguments& a) { coefficients(a, at::ones({0})); }},
      {"[attention] 10 coefficients, not 1 to 9",
       [&](Arguments& a) {
         coefficients(a, at::ones({4, 10}));
       }},
  });
}

TEST(Errors, Numbers) {
  expect_refused({
      {"[attention] dropout_p 1 is not in [0, 1)",
       [](Arguments& a) { a.options.dropout(1); }},
      {"[attention] dropout_p -0.5 is not in [0, 1)",
       [](Arguments& a) { a.options.dropout(-0.5); }},
      {"[attention] dropout_p nan is not in [0, 1)",
       [](Arguments& a) { a.options.dropout(kNaN); }},
      {"[attention] scale nan is not finite",
       [](Arguments& a) { a.options.scale(kNaN); }},
      {"[attention] scale -inf is not finite",
       [](Arguments& a) { a.options.scale(-kInf); }},
  });
}

// A bad formula is shown with a caret under the column.
TEST(Errors, Formula) {
  const auto from_core = [](const std::string& formula) {
    try {
      Activation::parse(formula);
    } catch (const FormulaError& error) {
      return "[attention] bad activation: " + std::string(error.what());
    }
    return std::string();
  };
  const std::string message = from_core("x^3 + y");
  EXPECT_NE(message.find("\n"), std::string::npos);
  EXPECT_NE(message.find("      ^"), std::string::npos) << message;
  expect_refused({
      {message.c_str(), [](Arguments& a) { a.options.activation("x^3 + y"); }},
  });
  const std::string empty = from_core("");
  EXPECT_NE(empty, "");
  expect_refused({
      {empty.c_str(), [](Arguments& a) { a.options.activation(""); }},
  });
}

std::string boxed_message(
    const char* op, const c10::Stack& arguments,
    const std::unordered_map<std::string, c10::IValue>& named = {}) {
  return message_of([&] { test::call_by_schema(op, arguments, named); });
}

// Refused whether it would matter or not.
TEST(Errors, CausalAlignment) {
  const Arguments a;
  for (const bool causal : {false, true}) {
    EXPECT_EQ(boxed_message(
                  "polyattn::attention", {a.q, a.k, a.v},
                  {{"is_causal", causal}, {"causal_alignment", "diagonal"}}),
              "[attention] causal_alignment 'diagonal' is neither 'upper_left' "
              "nor 'lower_right'");
  }
}

TEST(Errors, CoefficientsOfWhatHasNone) {
  EXPECT_EQ(boxed_message("polyattn::polynomial_coefficients", {"sigmoid"}),
            "[attention] sigmoid is not a polynomial");
}

// The kernels take no others, and the message must not be theirs.
TEST(Errors, CoefficientsThatAreNotFinite) {
  const at::Tensor c = at::ones({4, 3});
  c[2][1] = kNaN;
  expect_refused({
      {"[attention] coefficient nan of x^1 is not finite",
       [&](Arguments& a) { a.options.activation("x").coefficients(c); }},
      {"[attention] coefficient nan of x^1 is not finite",
       [&](Arguments& a) { a.options.activation("x").coefficients(c[2]); }},
  });
}

}  // namespace errors_test
}  // namespace polyattn
