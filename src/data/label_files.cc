#include "data/label_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_set>

#include "data/mat_file.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::size_t kLongestName = 255;  // of a file

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) > 0x20 && c != 0x7f &&
                  c != '/' && c != '\\';
         });
}

// A text line by line; empty lines are left out.
class Lines {
 public:
  Lines(std::string_view text, const std::string& source)
      : rest_(text), source_(source) {}

  // False at the end.
  bool next() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      line_ = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? "" : rest_.substr(end + 1);
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (!line_.empty()) return true;
    }
    return false;
  }

  // What stands before the first of these characters; the line begins behind
  // it then.
  std::string_view take(std::string_view ends) {
    const std::size_t end = line_.find_first_of(ends);
    const std::string_view part = line_.substr(0, end);
    line_ = end == std::string_view::npos ? "" : line_.substr(end + 1);
    return part;
  }

  std::string take_name(std::string_view ends, const char* what) {
    const std::string_view name = take(ends);
    if (!is_plain_name(name))
      refuse(fmt::format("there is no name of {}", what));
    return std::string(name);
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw DataError(fmt::format("{}, line {}: {}", source_, number_, reason));
  }

 private:
  std::string_view rest_;
  std::string_view line_;
  std::size_t number_ = 0;
  const std::string& source_;
};

template <typename Values>
Values not_empty(Values values, const std::string& source) {
  if (values.empty()) {
    throw DataError(fmt::format("{}: there is nothing in it", source));
  }
  return values;
}

}  // namespace

std::vector<std::string> parse_names(std::string_view text, Names names,
                                     const std::string& source) {
  std::vector<std::string> found;
  std::unordered_set<std::string> seen;
  Lines lines(text, source);
  while (lines.next()) {
    std::string name = lines.take_name(" \t,", "a class");
    if (names == Names::kEachOnce && !seen.insert(name).second) {
      lines.refuse(fmt::format("{} is there a second time", name));
    }
    found.push_back(std::move(name));
  }
  return not_empty(std::move(found), source);
}

std::vector<LabelledName> parse_val_annotations(std::string_view text,
                                                const std::string& source) {
  std::vector<LabelledName> found;
  Lines lines(text, source);
  while (lines.next()) {
    std::string image = lines.take_name("\t", "an image");
    found.push_back({std::move(image), lines.take_name("\t", "a class")});
  }
  return not_empty(std::move(found), source);
}

std::vector<LabelledName> parse_val_solution(std::string_view text,
                                             const std::string& source) {
  std::vector<LabelledName> found;
  Lines lines(text, source);
  if (lines.next() && lines.take(",") != "ImageId") {
    lines.refuse("the titles ImageId,PredictionString are expected");
  }
  while (lines.next()) {
    std::string image = lines.take_name(",", "an image");
    found.push_back({std::move(image), lines.take_name(" ", "a class")});
  }
  return not_empty(std::move(found), source);
}

std::vector<std::int32_t> parse_ground_truth(std::string_view text,
                                             std::size_t classes,
                                             const std::string& source) {
  std::vector<std::int32_t> labels;
  Lines lines(text, source);
  while (lines.next()) {
    const std::string_view word = lines.take(" \t");
    std::size_t number = 0;
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() ||
        number < 1 || number > classes) {
      lines.refuse(fmt::format("a number from 1 to {} is expected", classes));
    }
    labels.push_back(static_cast<std::int32_t>(number - 1));
  }
  return not_empty(std::move(labels), source);
}

std::vector<std::string> parse_kit_classes(std::span<const std::byte> bytes,
                                           const std::string& source) {
  const auto refuse = [&](const std::string& reason) {
    throw DataError(fmt::format("{}: {}", source, reason));
  };
  const MatStruct synsets = read_mat_struct(bytes, "synsets", source);
  const std::size_t id = synsets.field("ILSVRC2012_ID", source);
  const std::size_t wnid = synsets.field("WNID", source);
  const std::size_t children = synsets.field("num_children", source);
  std::map<double, std::string> found;
  for (const std::vector<MatValue>& synset : synsets.elements) {
    if (!synset[id].number || !synset[wnid].text || !synset[children].number) {
      refuse("a synset lacks its ILSVRC2012_ID, WNID or num_children");
    }
    if (*synset[children].number != 0) continue;
    if (!is_plain_name(*synset[wnid].text)) refuse("a WNID is no name");
    if (!(*synset[id].number >= 1)) {
      refuse(fmt::format("a synset has the number {}", *synset[id].number));
    }
    if (!found.emplace(*synset[id].number, *synset[wnid].text).second) {
      refuse(fmt::format("two synsets have the number {}", *synset[id].number));
    }
  }
  std::vector<std::string> names;
  for (const auto& [number, name] : found) {
    if (number != static_cast<double>(names.size() + 1)) {
      refuse(fmt::format("there is no synset with the number {}",
                         names.size() + 1));
    }
    names.push_back(name);
  }
  return not_empty(std::move(names), source);
}

}  // namespace polyattn::data
