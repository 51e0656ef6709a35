#include "data/aan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/mapped_file.h"
#include "base/message.h"
#include "data/byte_tokens.h"
#include "data/load.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFields = 5;
constexpr const char* kTrainPairs = "new_aan_pairs.train.tsv";
constexpr const char* kTestPairs = "new_aan_pairs.test.tsv";

std::int32_t parse_label(std::string_view text) {
  if (text == "0" || text == "0.0") return 0;
  if (text == "1" || text == "1.0") return 1;
  throw DataError(
      fmt::format("its label is {}, not 0 or 1", base::in_quotes(text)));
}

std::array<std::string_view, kFields> fields_of(std::string_view line) {
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  if (tabs + 1 != static_cast<std::ptrdiff_t>(kFields)) {
    throw DataError(
        fmt::format("it has {} fields, not {}: a label, two names and two "
                    "texts, with tabs between them",
                    tabs + 1, kFields));
  }
  std::array<std::string_view, kFields> fields;
  for (std::string_view& field : fields) {
    const std::size_t end = std::min(line.find('\t'), line.size());
    field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

void append_pair(std::string_view line, std::int64_t max_length,
                 SequenceSet& set) {
  const auto fields = fields_of(line);
  const std::int32_t label = parse_label(fields[0]);
  for (std::size_t i = 3; i < kFields; ++i) {
    const std::string_view text = fields[i];
    if (text.empty() || !is_byte_text(text)) {
      throw DataError(fmt::format("text {} {}", i - 2,
                                  text.empty() ? "is empty" : "is not UTF-8"));
    }
    append_bytes(text.substr(0, static_cast<std::size_t>(max_length)),
                 set.tokens);
    set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
  }
  set.labels.push_back(label);
}

SequenceSet read_aan_file(const fs::path& path, std::int64_t max_length) {
  std::optional<base::MappedFile> file;
  try {
    file.emplace(path);
  } catch (const std::runtime_error& error) {
    throw DataError(
        fmt::format("cannot read {}: {}", path.string(), error.what()));
  }
  const auto bytes = file->bytes();
  return parse_aan_file(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
      path.string(), max_length);
}

}  // namespace

SequenceSet parse_aan_file(std::string_view text, std::string_view name,
                           std::int64_t max_length) {
  SequenceSet set;
  set.towers = 2;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    try {
      append_pair(line, max_length, set);
    } catch (const DataError& error) {
      throw DataError(fmt::format("cannot read {}: line {}: {}", name, number,
                                  error.what()));
    }
  }
  if (set.count() == 0) {
    throw DataError(fmt::format("cannot read {}: it has no pairs", name));
  }
  return set;
}

SequenceSplits load_aan(const AanSource& source) {
  if (source.path.empty()) {
    throw DataError(fmt::format(
        "[aan] the pairs of papers need a path: the folder of Long Range Arena "
        "with {} and {}",
        kTrainPairs, kTestPairs));
  }
  if (source.max_length < 1) {
    throw DataError(fmt::format("[aan] max_length {} < 1", source.max_length));
  }
  SequenceSplits splits;
  splits.train = read_aan_file(source.path / kTrainPairs, source.max_length);
  splits.test = read_aan_file(source.path / kTestPairs, source.max_length);
  splits.vocabulary = kByteVocabulary;
  splits.class_names = {"no citation", "citation"};
  return splits;
}

}  // namespace polyattn::data
