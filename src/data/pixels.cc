#include "data/pixels.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace polyattn::data {

SequenceSet grey_pixels(const ImageSet& images) {
  if (images.channels != 1 && images.channels != 3) {
    throw DataError(
        fmt::format("[pixels] images of {} channels are no grey or "
                    "coloured ones",
                    images.channels));
  }
  const auto plane = static_cast<std::size_t>(images.height * images.width);
  const auto image = static_cast<std::size_t>(images.channels) * plane;
  SequenceSet set;
  set.labels = images.labels;
  set.tokens.reserve(images.count() * plane);
  for (std::size_t i = 0; i < images.count(); ++i) {
    const std::uint8_t* const first = images.pixels.data() + i * image;
    for (std::size_t p = 0; p < plane; ++p) {
      const unsigned grey = images.channels == 1
                                ? first[p]
                                : (299U * first[p] + 587U * first[plane + p] +
                                   114U * first[2 * plane + p] + 500U) /
                                      1000U;
      set.tokens.push_back(static_cast<std::uint8_t>(grey));
    }
    set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
  }
  return set;
}

SequenceSplits load_pixels(const ImageSource& source) {
  ImageSplits images = load_images(source);
  SequenceSplits splits;
  splits.vocabulary = 256;
  splits.class_names = std::move(images.class_names);
  splits.train = grey_pixels(std::exchange(images.train, {}));
  splits.test = grey_pixels(images.test);
  return splits;
}

}  // namespace polyattn::data
