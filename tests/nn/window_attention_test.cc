// WindowAttention against attention over the whole map, whose visible keys and
// offsets are found token by token.
#include "polyattn/nn/window_attention.h"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "nn/support.h"
#include "nn/windows.h"
#include "polyattn/nn/initialise.h"

namespace polyattn::nn {
namespace window_attention_test {

using test::expect_error;
using test::expect_gradients;
using test::random_rows;

constexpr std::int64_t kDim = 12;
constexpr std::int64_t kHeads = 3;

// No value stays at 0 or 1.
WindowAttention make_windows(const WindowAttentionOptions& options) {
  torch::manual_seed(5);
  WindowAttention attention(options);
  attention->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  attention->in_proj_bias.normal_(0, 0.3);
  attention->out_proj->bias.normal_(0, 0.3);
  if (options.cosine()) {
    attention->logit_scale.normal_(0.5, 0.3);
    attention->logit_scale[0] = 5;  // above log(100)
  } else {
    attention->bias_table.normal_(0, 0.5);
  }
  return attention;
}

// Of one axis of a map that is filled up to `length`.
struct Axis {
  std::int64_t length, window, shift;

  // The place of a token after the shift.
  std::int64_t place(std::int64_t i) const {
    return (i - shift + length) % length;
  }
  // In one window, and neither of them came round an edge alone.
  bool together(std::int64_t i, std::int64_t j) const {
    return place(i) / window == place(j) / window && (i < shift) == (j < shift);
  }
  std::int64_t offset(std::int64_t i, std::int64_t j) const {
    return place(i) % window - place(j) % window;
  }
};

Axis axis_of(std::int64_t size, const WindowAttentionOptions& o) {
  const std::int64_t length = (size + o.window() - 1) / o.window() * o.window();
  return {length, o.window(), length > o.window() ? o.shift() : 0};
}

// The bias of the score of a token that is `down` below and `right` of another:
// [H].
torch::Tensor bias_of(WindowAttentionImpl& a, std::int64_t down,
                      std::int64_t right) {
  const std::int64_t w = a.options.window();
  if (!a.options.cosine()) {
    return a.bias_table[(down + w - 1) * (2 * w - 1) + right + w - 1];
  }
  const auto scaled = [&](std::int64_t offset) {
    const double x =
        8.0 * static_cast<double>(offset) / static_cast<double>(w - 1);
    return std::copysign(std::log2(std::abs(x) + 1) / 3, x);
  };
  const auto y = a.bias_fc2->forward(torch::relu(a.bias_fc1->forward(
      torch::tensor({scaled(down), scaled(right)}, torch::kDouble))));
  return 16 * torch::sigmoid(y) - 8;
}

struct Plain {
  torch::Tensor output;  // [B, height, width, C]
  torch::Tensor seen;    // bool [T, T], of the filled map
};

// S [B, H, T, T] -> A, with the rows' own numbers of keys.
torch::Tensor plain_weights(const torch::Tensor& s, const torch::Tensor& seen,
                            const std::string& formula) {
  if (formula == "softmax") {
    return s.masked_fill(~seen, -std::numeric_limits<double>::infinity())
        .softmax(-1);
  }
  const auto n = seen.sum(-1, true).to(torch::kDouble);
  const int power = formula == "x^3/sqrt(N)" ? 3 : 2;
  return s.pow(power).masked_fill(~seen, 0) / n.sqrt();
}

// Rows of length one; keys of filling are zero and stay so.
torch::Tensor unit(const torch::Tensor& rows) {
  const auto square = rows.square().sum(-1, true);
  return rows / square.masked_fill(square.eq(0), 1).sqrt();
}

Plain plain(WindowAttentionImpl& a, const torch::Tensor& x) {
  const Axis down = axis_of(x.size(1), a.options);
  const Axis right = axis_of(x.size(2), a.options);
  const std::int64_t tokens = down.length * right.length;
  const auto filled =
      torch::constant_pad_nd(
          x, {0, 0, 0, right.length - x.size(2), 0, down.length - x.size(1)})
          .flatten(1, 2);
  const std::int64_t w = a.options.window();
  auto seen = torch::zeros({tokens, tokens}, torch::kBool);
  auto offset = torch::zeros({tokens, tokens}, torch::kLong);
  auto sees = seen.accessor<bool, 2>();
  auto offsets = offset.accessor<std::int64_t, 2>();
  for (std::int64_t p = 0; p < tokens; ++p) {
    for (std::int64_t q = 0; q < tokens; ++q) {
      const std::int64_t pr = p / right.length, pc = p % right.length;
      const std::int64_t qr = q / right.length, qc = q % right.length;
      if (!down.together(pr, qr) || !right.together(pc, qc)) continue;
      sees[p][q] = true;
      offsets[p][q] =
          (down.offset(pr, qr) + w) * 2 * w + right.offset(pc, qc) + w;
    }
  }
  std::vector<torch::Tensor> bias;  // by offset
  for (std::int64_t i = 0; i < 4 * w * w; ++i) {
    const std::int64_t r = i / (2 * w) - w, c = i % (2 * w) - w;
    bias.push_back(r > -w && c > -w ? bias_of(a, r, c)
                                    : torch::zeros({kHeads}, torch::kDouble));
  }
  auto own = a.in_proj_bias;
  if (a.options.cosine()) {
    auto kept = torch::ones({3 * kDim}, torch::kDouble);
    kept.narrow(0, kDim, kDim).zero_();
    own = own * kept;
  }
  const auto rows = filled.matmul(a.in_proj_weight.t()) + own;
  const auto heads = [&](std::int64_t part) {
    return rows.narrow(2, part * kDim, kDim)
        .view({x.size(0), tokens, kHeads, kDim / kHeads})
        .transpose(1, 2);
  };
  auto q = heads(0), k = heads(1);
  double scale = 1 / std::sqrt(static_cast<double>(kDim / kHeads));
  if (a.options.cosine()) {
    q = unit(q) * a.logit_scale.exp().clamp_max(100.0);
    k = unit(k);
    scale = 1;
  }
  const auto s = scale * q.matmul(k.transpose(2, 3)) +
                 torch::stack(bias)
                     .index_select(0, offset.flatten())
                     .view({tokens, tokens, kHeads})
                     .permute({2, 0, 1});
  const auto o =
      plain_weights(s, seen, a.options.activation()).matmul(heads(2));
  const auto y = a.out_proj->forward(o.transpose(1, 2).flatten(2))
                     .view({x.size(0), down.length, right.length, kDim});
  return {y.narrow(1, 0, x.size(1)).narrow(2, 0, x.size(2)), seen};
}

std::vector<torch::Tensor> derivatives(WindowAttentionImpl& a,
                                       const torch::Tensor& x,
                                       const torch::Tensor& y) {
  auto inputs = a.parameters();
  inputs.push_back(x);
  return torch::autograd::grad(
      {(y * torch::arange(y.numel(), torch::kDouble).sin().view(y.sizes()))
           .sum()},
      inputs);
}

// Sides that are multiples of the window, that are not, that are one window and
// less than one.
const std::pair<std::int64_t, std::int64_t> kMaps[] = {{8, 8}, {7, 10}, {4, 12},
                                                       {9, 3}, {4, 4},  {1, 6}};

TEST(WindowAttention, IsItsDefinition) {
  for (const bool cosine : {false, true}) {
    for (const char* formula : {"softmax", "x^3/sqrt(N)", "x^2/sqrt(N)"}) {
      for (const std::int64_t shift : {0, 1, 2}) {
        for (const auto& [height, width] : kMaps) {
          SCOPED_TRACE(std::string(formula) + (cosine ? " cosine " : " ") +
                       std::to_string(shift) + ' ' + std::to_string(height) +
                       'x' + std::to_string(width));
          auto attention = make_windows(WindowAttentionOptions(kDim, kHeads, 4)
                                            .shift(shift)
                                            .cosine(cosine)
                                            .activation(formula));
          const auto x = random_rows({2, height, width, kDim}).requires_grad_();
          const auto expected = plain(*attention, x).output;
          const auto actual = attention->forward(x);
          EXPECT_SAME(actual, expected);
          const auto own = derivatives(*attention, x, actual);
          const auto plain_own = derivatives(*attention, x, expected);
          for (std::size_t i = 0; i < own.size(); ++i) {
            SCOPED_TRACE(i);
            // One head's scale is above the limit and has no gradient; the
            // largest element is another's.
            EXPECT_LE(test::relative_error(own[i], plain_own[i]), 1e-10);
          }
        }
      }
    }
  }
}

// Windows of a shifted map of 6 x 4 and side 2, by hand: the windows of the
// last row hold tokens of rows 5 and 0, those of the last column of columns 3
// and 0.
TEST(WindowAttention, MasksWhatTheShiftBroughtTogether) {
  const WindowGrid grid = window_grid(6, 4, 2, 1);
  EXPECT_EQ(grid.rows, 3);
  EXPECT_EQ(grid.columns, 2);
  const auto map = torch::arange(24, torch::kLong).view({1, 6, 4, 1});
  const auto windows = to_windows(map, grid);
  EXPECT_TRUE(windows[0][0].flatten().equal(
      torch::tensor({5, 6, 9, 10}, torch::kLong)));
  EXPECT_TRUE(windows[0][1].flatten().equal(
      torch::tensor({7, 4, 11, 8}, torch::kLong)));
  EXPECT_TRUE(windows[0][5].flatten().equal(
      torch::tensor({23, 20, 3, 0}, torch::kLong)));
  EXPECT_TRUE(from_windows(windows, grid).equal(map));
  const auto mask = shift_mask(grid);
  ASSERT_EQ(mask.sizes(), (std::vector<std::int64_t>{6, 1, 4, 4}));
  const auto all = torch::ones({4, 4}, torch::kBool);
  const auto by_row =
      torch::tensor({{1, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 1}, {0, 0, 1, 1}})
          .to(torch::kBool);
  const auto by_column =
      torch::tensor({{1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 0, 1}})
          .to(torch::kBool);
  EXPECT_TRUE(mask[0][0].equal(all));
  EXPECT_TRUE(mask[2][0].equal(all));
  EXPECT_TRUE(mask[1][0].equal(by_column));
  EXPECT_TRUE(mask[3][0].equal(by_column));
  EXPECT_TRUE(mask[4][0].equal(by_row));
  EXPECT_TRUE(mask[5][0].equal(torch::eye(4).to(torch::kBool)));
  EXPECT_FALSE(shift_mask(window_grid(6, 4, 2, 0)).defined());
  // One window along an axis is not shifted.
  EXPECT_FALSE(shift_mask(window_grid(2, 1, 2, 1)).defined());
  EXPECT_EQ(window_grid(2, 4, 2, 1).shift_down, 0);
  EXPECT_EQ(window_grid(2, 4, 2, 1).shift_right, 1);
}

TEST(WindowAttention, KnowsItsOffsets) {
  EXPECT_TRUE(offset_index(2).view({4, 4}).equal(torch::tensor(
      {{4, 3, 1, 0}, {5, 4, 2, 1}, {7, 6, 4, 3}, {8, 7, 5, 4}}, torch::kLong)));
  const auto offsets = log_offsets(3);
  ASSERT_EQ(offsets.sizes(), (std::vector<std::int64_t>{25, 2}));
  const double near = std::log2(5.0) / 3, far = std::log2(9.0) / 3;
  EXPECT_SAME(offsets[0], torch::tensor({-far, -far}, torch::kDouble));
  EXPECT_SAME(offsets[3], torch::tensor({-far, near}, torch::kDouble));
  EXPECT_EQ(offsets[12].abs().max().item<double>(), 0);
  EXPECT_SAME(offsets[20], torch::tensor({far, -far}, torch::kDouble));
}

// The numbers of keys of its rows differ, so the norms are those of the whole
// map's matrix, window by window.
TEST(WindowAttention, WatchesNormsOfItsWindows) {
  auto attention = make_windows(WindowAttentionOptions(kDim, kHeads, 4)
                                    .shift(2)
                                    .activation("x^2/sqrt(N)"));
  attention->watch_norms(true);
  attention->watch_other("softmax");
  attention->watch_weights(true);
  const auto x = random_rows({2, 8, 12, kDim});
  attention->forward(x);
  ASSERT_TRUE(attention->norms());
  EXPECT_EQ(attention->norms()->weight.sizes(),
            (std::vector<std::int64_t>{2 * 6, kHeads}));
  EXPECT_EQ(attention->keys(), 16);
  EXPECT_EQ(attention->weights().sizes(),
            (std::vector<std::int64_t>{2, 6, kHeads, 16, 16}));
  EXPECT_SAME(attention->norms()->weight,
              attention->weights().square().sum({3, 4}).sqrt().flatten(0, 1));
  // Rows of softmax sum to one, and 16 rows of at most 16 keys have a norm
  // between 1 and 4.
  const auto& other = attention->other_norms()->weight;
  EXPECT_GE(other.min().item<double>(), 1);
  EXPECT_LE(other.max().item<double>(), 4);
  EXPECT_EQ(attention->kind(), "window");
}

TEST(WindowAttention, StartsWhereSoftmaxDoes) {
  for (const bool cosine : {false, true}) {
    for (const char* formula : {"x^3/sqrt(N)", "x^2/sqrt(N)"}) {
      SCOPED_TRACE(std::string(formula) + (cosine ? " cosine" : ""));
      torch::manual_seed(6);
      WindowAttention attention(WindowAttentionOptions(kDim, kHeads, 4)
                                    .shift(2)
                                    .cosine(cosine)
                                    .activation(formula));
      initialise(*attention, {"vit"});
      attention->to(torch::kDouble);
      {
        const torch::NoGradGuard no_grad;
        attention->in_proj_weight.mul_(30);
      }
      const auto x = random_rows({4, 8, 8, kDim});
      const auto weight = attention->in_proj_weight.clone();
      const auto starts = match_start(
          *attention, [&] { attention->forward(x); }, 0.5);
      ASSERT_EQ(starts.size(), 1U);
      EXPECT_EQ(attention->in_proj_weight.equal(weight), cosine);
      attention->watch_norms(true);
      attention->watch_other("softmax");
      attention->forward(x);
      const auto own = attention->norms()->weight.mean(0);
      const auto other = attention->other_norms()->weight.mean(0);
      for (std::size_t h = 0; h < kHeads; ++h) {
        const HeadStart& head = starts[0][h];
        const auto i = static_cast<std::int64_t>(h);
        EXPECT_LT(head.gain, 1);
        EXPECT_GT(head.before, head.after);
        EXPECT_NEAR(head.after / head.softmax, 0.5, 1e-3);
        EXPECT_NEAR(own[i].item<double>() / head.after, 1, 1e-9);
        EXPECT_NEAR(other[i].item<double>() / head.softmax, 1, 1e-9);
        if (cosine) {
          EXPECT_NEAR(attention->logit_scale[i].item<double>(),
                      std::log(10 * head.gain), 1e-6);
        }
      }
    }
  }
}

TEST(WindowAttention, IsInitialisedByName) {
  for (const bool cosine : {false, true}) {
    for (const std::string& name : initialisation_names()) {
      SCOPED_TRACE(name);
      WindowAttention attention(
          WindowAttentionOptions(64, 4, 7).cosine(cosine));
      {
        const torch::NoGradGuard no_grad;
        for (auto& p : attention->parameters()) p.fill_(100);
      }
      initialise(*attention, {name});
      for (const auto& item : attention->named_parameters()) {
        SCOPED_TRACE(item.key());
        EXPECT_LT(item.value().abs().max().item<double>(), 3);
      }
      if (cosine) {
        EXPECT_NEAR(attention->logit_scale.max().item<double>(), std::log(10.0),
                    1e-6);
        EXPECT_EQ(attention->logit_scale.sizes(),
                  (std::vector<std::int64_t>{4, 1, 1}));
      } else {
        // 676 draws of a deviation of 0.02, cut at two of them or not.
        EXPECT_NEAR(attention->bias_table.std().item<double>(),
                    name == "vit" ? 0.0176 : 0.02, 0.003);
      }
    }
  }
}

TEST(WindowAttention, DropsInTrainingAlone) {
  auto attention = make_windows(WindowAttentionOptions(kDim, kHeads, 4)
                                    .dropout(0.3)
                                    .projection_dropout(0.2));
  const auto x = random_rows({2, 8, 8, kDim});
  EXPECT_FALSE(attention->forward(x).equal(attention->forward(x)));
  attention->eval();
  EXPECT_SAME(attention->forward(x), plain(*attention, x).output);
}

TEST(WindowAttention, ClonesAndMapsOfOtherSizes) {
  auto attention =
      make_windows(WindowAttentionOptions(kDim, kHeads, 4).shift(2));
  const auto clone =
      std::dynamic_pointer_cast<WindowAttentionImpl>(attention->clone());
  for (const auto& [height, width] : kMaps) {
    const auto x = random_rows({1, height, width, kDim});
    EXPECT_TRUE(clone->forward(x).equal(attention->forward(x)));
    EXPECT_SAME(attention->forward(x), plain(*attention, x).output);
  }
}

TEST(WindowAttention, Refuses) {
  using Options = WindowAttentionOptions;
  const auto refuse = [](const Options& options, const std::string& message) {
    expect_error([&] { const WindowAttention attention(options); },
                 "[WindowAttention] " + message);
  };
  refuse(Options(0, 3, 4), "dim 0 < 1");
  refuse(Options(12, 0, 4), "heads 0 < 1");
  refuse(Options(12, 5, 4), "dim 12 is not a multiple of heads 5");
  refuse(Options(12, 3, 1), "window 1 < 2");
  refuse(Options(12, 3, 4).shift(-1), "shift -1 is not in [0, 4), the window");
  refuse(Options(12, 3, 4).shift(4), "shift 4 is not in [0, 4), the window");
  refuse(Options(12, 3, 4).dropout(1), "dropout 1 is not in [0, 1)");
  refuse(Options(12, 3, 4).projection_dropout(-1),
         "projection_dropout -1 is not in [0, 1)");
  auto attention = make_windows(Options(kDim, kHeads, 4));
  expect_error(
      [&] {
        attention->forward(random_rows({2, 16, kDim}));
      },
      "[WindowAttention] x of size [2, 16, 12] is not [B, height, "
      "width, 12]");
  expect_error(
      [&] {
        attention->forward(random_rows({2, 4, 4, 8}));
      },
      "[WindowAttention] x of size [2, 4, 4, 8] is not [B, height, "
      "width, 12]");
  expect_error(
      [&] {
        attention->forward(random_rows({2, 0, 4, kDim}));
      },
      "[WindowAttention] x of size [2, 0, 4, 12] has no tokens");
  try {
    const WindowAttention bad(Options(12, 3, 4).activation("x^^2"));
    ADD_FAILURE();
  } catch (const c10::Error& error) {
    EXPECT_EQ(std::string(error.what_without_backtrace())
                  .rfind("[WindowAttention] bad activation: ", 0),
              0U);
  }
}

}  // namespace window_attention_test
}  // namespace polyattn::nn
