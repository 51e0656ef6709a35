// Changes of colour and contrast, pixel by pixel, to the bytes that the Python
// Imaging Library gives. All work in place.
#pragma once

#include "augment/image.h"

namespace polyattn::augment {

// Factor 0 gives black, grey of the mean, no colours, a smooth image; 1 leaves
// the image as it is; beyond 1 is the opposite.
void adjust_brightness(Image& image, double factor);
void adjust_contrast(Image& image, double factor);
void adjust_saturation(Image& image, double factor);
void adjust_sharpness(Image& image, double factor);

// Turns the hue by so many circles, from -1/2 to 1/2. Grey images stay.
void adjust_hue(Image& image, double turns);

void invert(Image& image);
// Keeps the upper bits of each level.
void posterize(Image& image, int bits);
// Inverts levels from the threshold on.
void solarize(Image& image, double threshold);
// Adds to levels below 128.
void solarize_add(Image& image, int amount);
// Spreads the levels of each channel from the least to the greatest over all.
void autocontrast(Image& image);
// Gives the levels of each channel an even distribution.
void equalize(Image& image);

}  // namespace polyattn::augment
