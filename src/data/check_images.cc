#include "data/check_images.h"

#include <map>
#include <mutex>
#include <utility>

#include "data/decode.h"
#include "data/workers.h"

namespace polyattn::data {

std::vector<std::string> damaged_images(
    const ImageFileSet& files,
    const std::function<void(std::size_t)>& progress) {
  constexpr std::size_t kBetween = 64;
  std::mutex mutex;
  std::size_t done = 0;
  std::map<std::size_t, std::string> found;
  run_parallel(files.count(), [&](std::size_t i) {
    std::string problem;
    try {
      const std::string path = files.path(i);
      decode_image(read_image_file(path), 1, path);
    } catch (const DataError& error) {
      problem = error.what();
    }
    const std::lock_guard lock(mutex);
    if (!problem.empty()) found.emplace(i, std::move(problem));
    if (++done % kBetween == 0 || done == files.count()) progress(done);
  });
  std::vector<std::string> problems;
  problems.reserve(found.size());
  for (auto& [index, problem] : found) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace polyattn::data
