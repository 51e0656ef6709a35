#include "augment/policy.h"

#include <algorithm>
#include <cmath>

#include "augment/tone.h"

namespace polyattn::augment {
namespace {

constexpr int kBins = 31;

double either_sign(double magnitude, base::Random& random) {
  return random.below(2) == 0 ? magnitude : -magnitude;
}

// What torchvision's policies draw from; kInvert and kSolarizeAdd are not in
// it.
constexpr std::array kCommon = {
    Operation::kIdentity,     Operation::kShearX,     Operation::kShearY,
    Operation::kTranslateX,   Operation::kTranslateY, Operation::kRotate,
    Operation::kBrightness,   Operation::kColor,      Operation::kContrast,
    Operation::kSharpness,    Operation::kPosterize,  Operation::kSolarize,
    Operation::kAutoContrast, Operation::kEqualize};

// The greatest magnitudes of torchvision's policies.
struct Reach {
  double shear, translate_x, translate_y, rotate, factor;
  int bits;  // that posterize takes away
};

// Of bin 0 to 30, in f32 as there.
Choice from_bin(Operation operation, int bin, const Reach& reach,
                base::Random& random) {
  const double share = bin / static_cast<double>(kBins - 1);
  const auto signed_part = [&](double most) {
    return Choice{operation, either_sign(most * share, random)};
  };
  const auto whole_pixels = [&](double most) {
    Choice choice = signed_part(most);
    choice.magnitude = std::trunc(choice.magnitude);
    return choice;
  };
  switch (operation) {
    case Operation::kShearX:
    case Operation::kShearY:
      return signed_part(reach.shear);
    case Operation::kTranslateX:
      return whole_pixels(reach.translate_x);
    case Operation::kTranslateY:
      return whole_pixels(reach.translate_y);
    case Operation::kRotate:
      return signed_part(reach.rotate);
    case Operation::kBrightness:
    case Operation::kColor:
    case Operation::kContrast:
    case Operation::kSharpness: {
      Choice choice = signed_part(reach.factor);
      choice.magnitude += 1;
      return choice;
    }
    case Operation::kPosterize:
      return {operation, 8 - std::nearbyint(reach.bits * share)};
    case Operation::kSolarize:
      return {operation, 255 * (1 - share)};
    default:
      return {operation, 0};
  }
}

constexpr std::array kIncreasing = {
    Operation::kAutoContrast, Operation::kEqualize,   Operation::kInvert,
    Operation::kRotate,       Operation::kPosterize,  Operation::kSolarize,
    Operation::kSolarizeAdd,  Operation::kColor,      Operation::kContrast,
    Operation::kBrightness,   Operation::kSharpness,  Operation::kShearX,
    Operation::kShearY,       Operation::kTranslateX, Operation::kTranslateY};

// Of a level from 0 to 1.
Choice from_level(Operation operation, double level, std::int64_t width,
                  std::int64_t height, base::Random& random) {
  const auto signed_part = [&](double most) {
    return Choice{operation, either_sign(most * level, random)};
  };
  switch (operation) {
    case Operation::kRotate:
      return signed_part(30);
    case Operation::kShearX:
    case Operation::kShearY:
      return signed_part(0.3);
    case Operation::kTranslateX:
      return signed_part(0.45 * static_cast<double>(width));
    case Operation::kTranslateY:
      return signed_part(0.45 * static_cast<double>(height));
    case Operation::kPosterize:
      return {operation, 4 - std::floor(level * 4)};
    case Operation::kSolarize:
      return {operation, 256 - std::floor(level * 256)};
    case Operation::kSolarizeAdd:
      return {operation, std::floor(level * 110)};
    case Operation::kColor:
    case Operation::kContrast:
    case Operation::kBrightness:
    case Operation::kSharpness: {
      const Choice choice = signed_part(0.9);
      return {operation, std::max(0.1, 1 + choice.magnitude)};
    }
    default:
      return {operation, 0};
  }
}

template <std::size_t kCount>
Operation one_of(const std::array<Operation, kCount>& operations,
                 base::Random& random) {
  return operations[random.below(kCount)];
}

Choice draw_increasing(const PolicyOptions& options, std::int64_t width,
                       std::int64_t height, base::Random& random) {
  const Operation operation = one_of(kIncreasing, random);
  if (random.uniform() >= 0.5) return {};
  const double magnitude =
      options.magnitude + options.deviation * random.single_normal();
  return from_level(operation, std::clamp(magnitude / 10, 0.0, 1.0), width,
                    height, random);
}

}  // namespace

std::vector<Choice> draw_policy(const PolicyOptions& options,
                                std::int64_t width, std::int64_t height,
                                base::Random& random) {
  std::vector<Choice> choices;
  switch (options.kind) {
    case PolicyKind::kNone:
      break;
    case PolicyKind::kRandAugment: {
      const double part = 150.0 / 331.0;
      const Reach reach{0.3,
                        part * static_cast<double>(width),
                        part * static_cast<double>(height),
                        30,
                        0.9,
                        4};
      for (int i = 0; i < options.operations; ++i) {
        const Operation operation = one_of(kCommon, random);
        choices.push_back(from_bin(
            operation, static_cast<int>(options.magnitude), reach, random));
      }
      break;
    }
    case PolicyKind::kRandIncreasing:
      for (int i = 0; i < options.operations; ++i) {
        choices.push_back(draw_increasing(options, width, height, random));
      }
      break;
    case PolicyKind::kTrivialWide: {
      const Operation operation = one_of(kCommon, random);
      const auto bin = static_cast<int>(random.below(kBins));
      choices.push_back(
          from_bin(operation, bin, {0.99, 32, 32, 135, 0.99, 6}, random));
      break;
    }
  }
  return choices;
}

void augment(const PolicyOptions& options, Image& image, base::Random& random) {
  for (const Choice& choice :
       draw_policy(options, image.width, image.height, random)) {
    apply(choice.operation, choice.magnitude, options.filling, image);
  }
}

void jitter(const JitterOptions& options, Image& image, base::Random& random) {
  std::array<int, 4> order = {0, 1, 2, 3};
  for (std::uint32_t i = 3; i > 0; --i) {
    std::swap(order[i], order[random.below(i + 1)]);
  }
  const double low = std::max(0.0, 1 - options.strength);
  const auto factor = [&] {
    return low + (1 + options.strength - low) * random.uniform();
  };
  const double brightness = factor();
  const double contrast = factor();
  const double saturation = factor();
  const double turns = options.hue * (2 * random.uniform() - 1);
  for (const int step : order) {
    if (step == 3) {
      if (options.hue > 0) adjust_hue(image, turns);
    } else if (options.strength > 0) {
      if (step == 0) adjust_brightness(image, brightness);
      if (step == 1) adjust_contrast(image, contrast);
      if (step == 2) adjust_saturation(image, saturation);
    }
  }
}

}  // namespace polyattn::augment
