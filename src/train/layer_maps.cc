#include "train/layer_maps.h"

#include <algorithm>
#include <numeric>

#include "nn/windows.h"
#include "polyattn/nn/window_attention.h"

namespace polyattn::train {
namespace {

// A layer, and what of it is kept.
struct Shown {
  std::int64_t layer = 0;  // of the model's
  const nn::AttentionBase* attention = nullptr;
  torch::Tensor weights;              // [B, W, H, N, M]; W is 1 without windows
  std::vector<std::int64_t> windows;  // all of them: from the middle on
  std::int64_t heads = 0;

  std::int64_t matrix() const { return weights.size(3) * weights.size(4); }
  std::int64_t whole() const {
    return matrix() * weights.size(1) * weights.size(2);
  }
};

nn::WindowGrid grid_of(const nn::AttentionBase& attention) {
  return dynamic_cast<const nn::WindowAttentionImpl&>(attention).grid();
}

bool has_windows(const nn::AttentionBase& attention) {
  return attention.kind() == "window";
}

// What is in the middle of an image is more often looked at.
std::vector<std::int64_t> from_the_middle(const nn::WindowGrid& grid) {
  std::vector<std::int64_t> windows(
      static_cast<std::size_t>(grid.rows * grid.columns));
  std::iota(windows.begin(), windows.end(), 0);
  // Twice the distance of the middles along an axis.
  const auto away = [&](std::int64_t index, std::int64_t shift,
                        std::int64_t length) {
    return std::abs(2 * (index * grid.side + shift) + grid.side - length);
  };
  const auto distance = [&](std::int64_t window) {
    const std::int64_t y =
        away(window / grid.columns, grid.shift_down, grid.height);
    const std::int64_t x =
        away(window % grid.columns, grid.shift_right, grid.width);
    return y * y + x * x;
  };
  std::stable_sort(windows.begin(), windows.end(),
                   [&](std::int64_t a, std::int64_t b) {
                     return distance(a) < distance(b);
                   });
  return windows;
}

Shown seen(const nn::AttentionBase& attention, std::int64_t layer) {
  Shown shown;
  shown.layer = layer;
  shown.attention = &attention;
  shown.weights = attention.weights();
  if (has_windows(attention)) {
    shown.windows = from_the_middle(grid_of(attention));
  } else {
    shown.weights = shown.weights.unsqueeze(1);
    shown.windows = {0};
  }
  shown.heads = shown.weights.size(2);
  return shown;
}

// Heads before windows: one window of each tells more than all of one head.
void fit(Shown& shown, std::int64_t bytes) {
  const std::int64_t count = std::max<std::int64_t>(1, bytes / shown.matrix());
  shown.heads = std::min(shown.heads, count);
  const auto most = static_cast<std::size_t>(count / shown.heads);
  if (shown.windows.size() > most) shown.windows.resize(most);
  std::sort(shown.windows.begin(), shown.windows.end());
}

base::Json description(const Shown& shown, std::int64_t patch) {
  const nn::AttentionBase& attention = *shown.attention;
  base::Json json = {{"layer", shown.layer},
                     {"kind", attention.kind()},
                     {"stage", attention.stage},
                     {"rows", shown.weights.size(3)},
                     {"columns", shown.weights.size(4)}};
  if (has_windows(attention)) {
    const nn::WindowGrid grid = grid_of(attention);
    // Each stage has tokens of two by two of the one before.
    json["patch"] = patch << attention.stage;
    json["windows"] = {{"height", grid.height},
                       {"width", grid.width},
                       {"side", grid.side},
                       {"down", grid.shift_down},
                       {"right", grid.shift_right}};
  } else if (attention.kind() == "class") {
    json["patch"] = patch;
    json["prefix"] = 1;
  }
  return json;
}

void add_maps(const Shown& shown, std::int64_t input, base::Json& maps) {
  for (std::int64_t head = 0; head < shown.heads; ++head) {
    for (const std::int64_t window : shown.windows) {
      base::Json map = {
          {"input", input}, {"layer", shown.layer}, {"head", head}};
      if (has_windows(*shown.attention)) map["window"] = window;
      map.update(map_json(shown.weights[input][window][head]));
      maps.push_back(std::move(map));
    }
  }
}

std::int64_t sum_of_all(const std::vector<Shown>& layers) {
  return std::accumulate(
      layers.begin(), layers.end(), std::int64_t{0},
      [](std::int64_t sum, const Shown& shown) { return sum + shown.whole(); });
}

std::int64_t largest_matrix(const std::vector<Shown>& layers) {
  std::int64_t largest = 0;
  for (const Shown& shown : layers) {
    largest = std::max(largest, shown.matrix());
  }
  return largest;
}

}  // namespace

base::Json layer_maps(const std::vector<nn::AttentionBase*>& layers,
                      std::int64_t inputs, std::int64_t patch) {
  std::vector<Shown> all;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    all.push_back(seen(*layers[i], static_cast<std::int64_t>(i)));
  }
  const std::int64_t largest = largest_matrix(all), whole = sum_of_all(all);
  if (largest > kMapBytes || largest == 0) return nullptr;
  inputs = std::clamp<std::int64_t>(kMapBytes / whole, 1, inputs);
  const std::int64_t bytes = kMapBytes / inputs;
  std::vector<Shown> chosen;
  for (const std::int64_t i :
       spread(bytes / largest, static_cast<std::int64_t>(all.size()))) {
    chosen.push_back(all[static_cast<std::size_t>(i)]);
  }
  const auto count = static_cast<std::int64_t>(chosen.size());
  base::Json json = {{"layers", base::Json::array()},
                     {"maps", base::Json::array()}};
  for (Shown& shown : chosen) {
    fit(shown, whole <= bytes ? whole : bytes / count);
    json["layers"].push_back(description(shown, patch));
  }
  for (std::int64_t input = 0; input < inputs; ++input) {
    for (const Shown& shown : chosen) add_maps(shown, input, json["maps"]);
  }
  return json;
}

}  // namespace polyattn::train
