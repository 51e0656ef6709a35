#include "data/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/brown.h"
#include "data/cache.h"
#include "data/file.h"
#include "data/load.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBetween = "\n\n";

// Fewer bytes hold no byte and the one that follows it.
constexpr std::size_t kMinBytes = 2;

// Of sotu and brown, whatever the source says about paths.
constexpr double kTestShare = 0.1;

void check_share(double test_share) {
  if (test_share > 0 && test_share < 1) return;
  throw DataError(
      fmt::format("[text] test_share {} is not in (0, 1)", test_share));
}

// Bytes before the part that is held out.
std::size_t wanted_cut(std::size_t size, double test_share) {
  return static_cast<std::size_t>(
      std::llround(static_cast<double>(size) * (1 - test_share)));
}

std::size_t distance(std::size_t a, std::size_t b) {
  return a < b ? b - a : a - b;
}

TextSplits checked(TextSplits splits, double test_share,
                   const std::string& source) {
  if (splits.train.size() >= kMinBytes && splits.test.size() >= kMinBytes) {
    return splits;
  }
  throw DataError(fmt::format(
      "cannot use {}: with test_share {} its text gives {} bytes for training "
      "and {} for testing, where at least {} of each are needed",
      source, test_share, splits.train.size(), splits.test.size(), kMinBytes));
}

std::vector<std::string> text_names(const fs::path& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(
      names, [](const std::string& name) { return !name.ends_with(".txt"); });
  if (!names.empty()) return names;
  throw DataError(
      fmt::format("cannot read {}: the folder has no file that ends in .txt",
                  folder.string()));
}

bool begins_with_year(std::string_view name) {
  return name.size() >= 4 &&
         std::all_of(name.begin(), name.begin() + 4,
                     [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

TextSplits split_documents(const std::vector<std::string>& documents,
                           double test_share, const std::string& source) {
  check_share(test_share);
  std::string text;
  std::vector<std::size_t> borders;  // where a document begins
  for (const std::string& document : documents) {
    if (!borders.empty()) text += kBetween;
    borders.push_back(text.size());
    text += document;
  }
  if (documents.size() < 2) {
    throw DataError(fmt::format(
        "cannot use {}: it has {} documents, and at least 2 are needed to hold "
        "one out",
        source, documents.size()));
  }
  const std::size_t wanted = wanted_cut(text.size(), test_share);
  const std::size_t cut = *std::min_element(
      borders.begin() + 1, borders.end(), [&](std::size_t a, std::size_t b) {
        return distance(a, wanted) < distance(b, wanted);
      });
  return checked({text.substr(0, cut - kBetween.size()), text.substr(cut)},
                 test_share, source);
}

TextSplits split_lines(std::string text, double test_share,
                       const std::string& source) {
  check_share(test_share);
  const std::size_t wanted = wanted_cut(text.size(), test_share);
  const std::size_t tolerance = (text.size() - wanted) / 2;
  // Lines begin behind the newline before `wanted` and behind the one after.
  const std::size_t before =
      wanted == 0 ? std::string::npos : text.rfind('\n', wanted - 1);
  const std::size_t after = text.find('\n', wanted);
  std::size_t cut = wanted;
  std::size_t best = tolerance + 1;
  for (const std::size_t newline : {before, after}) {
    if (newline == std::string::npos) continue;
    if (distance(newline + 1, wanted) >= best) continue;
    cut = newline + 1;
    best = distance(cut, wanted);
  }
  std::string test = text.substr(cut);
  text.resize(cut);
  return checked({std::move(text), std::move(test)}, test_share, source);
}

std::vector<std::string> read_years(const fs::path& folder) {
  std::vector<std::string> documents;
  for (const std::string& name : text_names(folder)) {
    if (!begins_with_year(name)) {
      throw DataError(
          fmt::format("cannot read {}: the name does not begin with a year",
                      (folder / name).string()));
    }
    documents.push_back(read_text(folder / name));
  }
  return documents;
}

std::string read_texts(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return read_text(path);
  std::string text;
  for (const std::string& name : text_names(path)) {
    if (!text.empty()) text += kBetween;
    text += read_text(path / name);
  }
  return text;
}

TextSplits load_text(const TextSource& source) {
  if (source.name == "sotu") {
    const fs::path folder =
        source.path.empty() ? require_set("sotu") : source.path;
    return split_documents(read_years(folder), kTestShare, folder.string());
  }
  if (source.name == "brown") {
    const fs::path folder =
        source.path.empty() ? require_set("brown") : source.path;
    return split_documents(read_brown(folder), kTestShare, folder.string());
  }
  if (source.name != "text") {
    throw DataError(
        fmt::format("[text] there is no text '{}': it is sotu, brown, or text "
                    "with a path",
                    source.name));
  }
  if (source.path.empty()) {
    throw DataError(
        "[text] text needs a path: a file, or a folder of .txt files");
  }
  return split_lines(read_texts(source.path), source.test_share,
                     source.path.string());
}

}  // namespace polyattn::data
