// Features of polynomials, and which calls have a linear path at all.
#include "core/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/linear_plan.h"
#include "core/problem.h"
#include "core/random_inputs.h"

namespace polyattn::test {
namespace {

using Word = std::vector<std::int64_t>;

struct Feature {
  Word word;
  double weight;

  bool operator==(const Feature&) const = default;
};

// All non-decreasing words of this length, in the order of a dictionary.
std::vector<Word> words(std::int64_t width, int length) {
  std::vector<Word> list = {{}};
  for (int i = 0; i < length; ++i) {
    std::vector<Word> longer;
    for (const Word& word : list) {
      for (std::int64_t x = word.empty() ? 0 : word.back(); x < width; ++x) {
        longer.push_back(word);
        longer.back().push_back(x);
      }
    }
    list = longer;
  }
  return list;
}

std::vector<Feature> listed(FeatureCursor& cursor, std::int64_t most,
                            std::int64_t limit = INT64_MAX) {
  std::vector<Feature> list;
  while (std::ssize(list) < limit) {
    const FeatureRun run =
        cursor.next(std::min(most, limit - std::ssize(list)));
    if (run.count == 0) break;
    EXPECT_LE(run.count, most);
    for (std::int64_t x = 0; x < run.count; ++x) {
      Word word(run.prefix.begin(),
                run.prefix.begin() + std::max(run.degree - 1, 0));
      if (run.degree > 0) word.push_back(run.first + x);
      list.push_back({word, x == 0 ? run.first_weight : run.weight});
    }
  }
  return list;
}

// Zero, and every way in which degrees may be missing.
std::vector<Activation> polynomials() {
  std::vector<Activation> list;
  for (const char* formula :
       {"2", "x", "x^2", "x^3", "x^4", "x^5", "x^6", "x^7", "x^8", "3 - x",
        "1 + x + x^2/2", "x^3 - 2x", "1 - x^4/9", "-x^2 + x^5/7",
        "1 - x + x^2/3 - x^3/7 + x^5/50 - x^8/900"})
    list.push_back(Activation::parse(formula));
  Activation zero = list[0];
  zero.coefficient[0] = 0;
  list.push_back(zero);
  return list;
}

TEST(Features, MonomialsAreCounted) {
  for (std::int64_t width = 0; width <= 6; ++width)
    for (int degree = 0; degree <= kMaxDegree; ++degree)
      EXPECT_EQ(count_monomials(width, degree),
                std::ssize(words(width, degree)))
          << width << ' ' << degree;
  EXPECT_EQ(count_monomials(64, 2), 2080);
  EXPECT_EQ(count_monomials(64, 4), 766480);
  EXPECT_EQ(count_monomials(std::int64_t{1} << 52, 1), std::int64_t{1} << 52);
}

TEST(Features, TooManyToCountIsSaid) {
  EXPECT_EQ(count_monomials((std::int64_t{1} << 53) + 2, 1), -1);
  EXPECT_EQ(count_monomials(std::int64_t{1} << 40, 2), -1);
  EXPECT_EQ(count_monomials(INT64_MAX, 8), -1);
  EXPECT_EQ(count_monomials(100000, 8), -1);
  EXPECT_EQ(count_features(Activation::parse("1 + x^8"), 100000), -1);
}

TEST(Features, EachMultiIndexComesOnceInOrder) {
  for (const Activation& f : polynomials()) {
    for (std::int64_t width = 0; width <= 6; ++width) {
      SCOPED_TRACE(f.to_string() + " " + std::to_string(width));
      std::vector<Word> want;
      for (int p = 0; p <= f.degree; ++p) {
        if (f.coefficient[static_cast<std::size_t>(p)] == 0) continue;
        for (const Word& word : words(width, p)) want.push_back(word);
      }
      FeatureCursor cursor(f, width);
      std::vector<Word> got;
      for (const Feature& x : listed(cursor, INT64_MAX)) got.push_back(x.word);
      EXPECT_EQ(got, want);
      EXPECT_EQ(count_features(f, width), std::ssize(want));
    }
  }
}

TEST(Features, CuttingDoesNotChangeThem) {
  for (const Activation& f : polynomials()) {
    for (const std::int64_t width : {1, 2, 5}) {
      FeatureCursor whole(f, width);
      const std::vector<Feature> want = listed(whole, INT64_MAX);
      for (const std::int64_t most : {1, 2, 3, 4, 7}) {
        SCOPED_TRACE(f.to_string() + " cut at " + std::to_string(most));
        FeatureCursor cursor(f, width);
        EXPECT_EQ(listed(cursor, most), want);
      }
    }
  }
}

TEST(Features, SkippingIsWalking) {
  for (const Activation& f : polynomials()) {
    FeatureCursor whole(f, 4);
    const std::vector<Feature> all = listed(whole, INT64_MAX);
    for (std::int64_t from = 0; from <= std::ssize(all) + 2; ++from) {
      FeatureCursor cursor(f, 4);
      cursor.skip(from);
      const auto begin = all.begin() + std::min(from, std::ssize(all));
      EXPECT_EQ(listed(cursor, INT64_MAX), std::vector(begin, all.end()));
      if (from % 5 != 0) continue;  // skipped twice
      FeatureCursor twice(f, 4);
      twice.skip(from / 3);
      twice.skip(from - from / 3);
      EXPECT_EQ(listed(twice, 3), std::vector(begin, all.end()));
    }
  }
}

TEST(Features, TheyAddUpToThePolynomial) {
  std::mt19937_64 random(1);
  const auto draw = [&] {
    return static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  };
  for (const Activation& f : polynomials()) {
    for (std::int64_t width = 0; width <= 6; ++width) {
      SCOPED_TRACE(f.to_string() + " " + std::to_string(width));
      std::vector<double> q, k;
      for (std::int64_t c = 0; c < width; ++c)
        q.push_back(1.5 * draw()), k.push_back(1.5 * draw());
      double score = 0, size = 0, sum = 0;
      FeatureCursor cursor(f, width);
      for (const Feature& x : listed(cursor, 3)) {
        double term = x.weight;
        for (const std::int64_t c : x.word)
          term *=
              q[static_cast<std::size_t>(c)] * k[static_cast<std::size_t>(c)];
        sum += term;
        size += std::fabs(term);
      }
      for (std::size_t c = 0; c < q.size(); ++c) score += q[c] * k[c];
      // A term has at most 2 * 8 + 16 roundings and as many additions as there
      // are features; the polynomial has fewer.
      const double roundings =
          40 + static_cast<double>(count_features(f, width));
      EXPECT_NEAR(sum, f.weight(score, 1), 2 * roundings * 0x1p-53 * size);
    }
  }
}

TEST(Features, SignsOfPolynomials) {
  const auto sign = [](const char* formula) {
    return constant_sign(Activation::parse(formula));
  };
  for (const char* formula :
       {"1", "x^2", "x^4", "x^6/9", "(1 + x)^2", "1 + x + x^2/2",
        "1 - x + x^2/4", "1 - 2x + x^2", "x^2 + x^4", "x^2*(x - 3)^2",
        "(x - 1)^2*(x + 2)^2", "(1 + x + x^2)^2", "(x - 0.1)^4",
        "1 + x + x^2/2 + x^3/6 + x^4/24", "(x^2 - 2)^2", "(x - 7)^8",
        "1e-9 + x^2", "1e9x^2 + 1e-9x^4"})
    EXPECT_EQ(sign(formula), 1) << formula;
  for (const char* formula :
       {"-1", "-x^2", "-x^4", "-(1 + x)^2", "-1 + x - x^2/2", "-1 - x^8"})
    EXPECT_EQ(sign(formula), -1) << formula;
  for (const char* formula :
       {"x", "x^3", "1 + x", "x^2 - 1", "1 - x^2", "x^4 - x^2", "x^2 - 1e-9",
        "1 - 3x + x^2", "x^5 + x^2", "1 + x + x^2/2 + x^3/6", "x^4 - 0.01x^3",
        "x^8 - x^2/1000", "(x - 1)^2*(x + 2)^2 - 1e-6", "1 - 2.0001x + x^2"})
    EXPECT_EQ(sign(formula), 0) << formula;
}

// Products of squares plus c: positive for c > 0, and below zero somewhere for
// c < 0, as it is c at the root.
TEST(Features, SignsOfRandomPolynomials) {
  std::mt19937_64 random(2);
  const auto draw = [&](std::int64_t most) {
    return static_cast<double>(random() %
                               static_cast<std::uint64_t>(2 * most + 1)) -
           static_cast<double>(most);
  };
  for (int turn = 0; turn < 500; ++turn) {
    std::string text = turn % 2 == 0 ? "" : "-";
    const int factors = 1 + turn % 3;
    for (int i = 0; i < factors; ++i) {
      if (i > 0) text += '*';
      text += "(x - " + std::to_string(std::fabs(draw(400)) / 100) + ")^2";
    }
    const int sign = turn % 2 == 0 ? 1 : -1;
    const double off = sign * 0.001;
    const auto with = [&](double c) {
      Activation f = Activation::parse(text);
      f.coefficient[0] += c;
      return constant_sign(f);
    };
    EXPECT_EQ(with(0), sign) << text;
    EXPECT_EQ(with(off), sign) << text;
    EXPECT_EQ(with(-off), 0) << text;
  }
}

std::string obstacle(const Case& c) {
  const Instance instance(c);
  return linear_obstacle(
      check_problem("test", instance.inputs(), instance.config()));
}

TEST(LinearObstacle, NoneWhereThereIsAPath) {
  for (const char* formula : {"x", "x^3/sqrt(N)", "x^8/N",
                              "(1 + x + x^2/2)/sum", "-x^2/sum", "1 + x + x^3"})
    EXPECT_EQ(obstacle({.formula = formula}), "");
  EXPECT_EQ(obstacle({.formula = "x", .causal = Causal::kLast}), "");
  EXPECT_EQ(obstacle({.batch = 2, .formula = "x", .mask = Extra::kPadding}),
            "");
  EXPECT_EQ(
      obstacle(
          {.heads = 4, .kv_heads = 2, .formula = "x", .mask = Extra::kPadding}),
      "");
}

TEST(LinearObstacle, SaysWhatIsInTheWay) {
  EXPECT_EQ(obstacle({.formula = "softmax"}), "softmax is not a polynomial");
  EXPECT_EQ(obstacle({.formula = "relu^2/N"}), "relu^2/N is not a polynomial");
  EXPECT_EQ(obstacle({.formula = "sigmoid"}), "sigmoid is not a polynomial");
  EXPECT_EQ(obstacle({.formula = "x^3/sum"}),
            "x^3/sum has weights of both signs, whose absolute values are no "
            "polynomial");
  EXPECT_EQ(obstacle({.formula = "x", .bias = Extra::kFull}),
            "a bias is added to the scores");
  EXPECT_EQ(obstacle({.formula = "x", .bias = Extra::kPadding}),
            "a bias is added to the scores");
  for (const Extra mask :
       {Extra::kFull, Extra::kHeads, Extra::kRows, Extra::kQueries})
    EXPECT_EQ(obstacle({.formula = "x", .mask = mask}),
              "the mask differs from row to row");
  EXPECT_EQ(obstacle({.d = 3000, .formula = "x^4"}),
            "the features of x^4 at width 3000 are too many to count");
}

TEST(LinearObstacle, MasksOfHeads) {
  const auto with_mask = [](const Case& c) {
    const Instance instance(c);
    const std::vector<std::uint8_t> seen(
        static_cast<std::size_t>(c.heads * c.m), 1);
    AttentionInputs in = instance.inputs();
    const Extents size = {1, c.heads, 1, c.m};
    in.mask = ConstMask{seen.data(), size, contiguous_strides(size)};
    return linear_obstacle(check_problem("test", in, instance.config()));
  };
  EXPECT_EQ(with_mask({.heads = 4, .kv_heads = 4, .formula = "x"}), "");
  EXPECT_EQ(with_mask({.heads = 4, .kv_heads = 2, .formula = "x"}),
            "the mask differs among heads that share their keys");
}

}  // namespace
}  // namespace polyattn::test
