#include "data/listops_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/message.h"
#include "data/cache.h"
#include "data/generated.h"
#include "data/listops.h"
#include "data/listops_generator.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "Source\tTarget";
constexpr const char* kTrainFile = "basic_train.tsv";
constexpr const char* kTestFile = "basic_test.tsv";

// Takes the first line off the text.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void parse_line(std::string_view line, std::int64_t max_length,
                SequenceSet& set) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    throw DataError("there is no tab between an expression and its value");
  }
  const std::int32_t value = parse_listops(line.substr(0, tab), set.tokens);
  const std::string_view target = line.substr(tab + 1);
  if (target != std::to_string(value)) {
    throw DataError(fmt::format("the value is given as {}, but it is {}",
                                base::in_quotes(target), value));
  }
  const auto end = static_cast<std::int64_t>(set.tokens.size());
  if (end - set.begin.back() > max_length) {
    throw DataError(
        fmt::format("the expression has {} tokens, but max_length is {}",
                    end - set.begin.back(), max_length));
  }
  set.begin.push_back(end);
  set.labels.push_back(value);
}

SequenceSplits read_folder(const fs::path& folder, std::int64_t max_length) {
  SequenceSplits splits = empty_listops();
  splits.train = read_listops_file(folder / kTrainFile, max_length);
  splits.test = read_listops_file(folder / kTestFile, max_length);
  return splits;
}

void check_count(const fs::path& path, const SequenceSet& set,
                 std::int64_t count) {
  if (std::cmp_equal(set.count(), count)) return;
  throw DataError(fmt::format("cannot read {}: it has {} expressions, not {}",
                              path.string(), set.count(), count));
}

SequenceSplits read_kept_set(const fs::path& folder,
                             const ListOpsSource& source) {
  SequenceSplits splits = read_folder(folder, source.max_length);
  check_count(folder / kTrainFile, splits.train, source.train_count);
  check_count(folder / kTestFile, splits.test, source.test_count);
  return splits;
}

}  // namespace

SequenceSet parse_listops_file(std::string_view text, std::string_view name,
                               std::int64_t max_length) {
  SequenceSet set;
  std::int64_t number = 1;
  try {
    if (take_line(text) != kHeader) {
      throw DataError("it is not \"Source<TAB>Target\"");
    }
    while (!text.empty()) {
      ++number;
      parse_line(take_line(text), max_length, set);
    }
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("cannot read {}: line {}: {}", name, number, error.what()));
  }
  if (set.count() == 0) {
    throw DataError(fmt::format("cannot read {}: it has no expressions", name));
  }
  return set;
}

SequenceSet read_listops_file(const fs::path& path, std::int64_t max_length) {
  std::optional<base::MappedFile> file;
  try {
    file.emplace(path);
  } catch (const std::runtime_error& error) {
    throw DataError(
        fmt::format("cannot read {}: {}", path.string(), error.what()));
  }
  const auto bytes = file->bytes();
  return parse_listops_file(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
      path.string(), max_length);
}

void write_listops_file(const fs::path& path, const SequenceSet& set) {
  constexpr std::size_t kBufferBytes = 1 << 20;
  try {
    base::AtomicFile file(path);
    std::string buffer = fmt::format("{}\n", kHeader);
    const auto flush = [&] {
      file.write(std::as_bytes(std::span(buffer)));
      buffer.clear();
    };
    for (std::size_t i = 0; i < set.count(); ++i) {
      const auto begin = static_cast<std::size_t>(set.begin[i]);
      const auto end = static_cast<std::size_t>(set.begin[i + 1]);
      const auto tokens = std::span(set.tokens).subspan(begin, end - begin);
      buffer += fmt::format("{}\t{}\n", listops_text(tokens), set.labels[i]);
      if (buffer.size() >= kBufferBytes) flush();
    }
    flush();
    file.commit();
  } catch (const std::system_error& error) {
    throw DataError(error.what());
  }
}

fs::path listops_folder(const ListOpsSource& source) {
  return cache_folder("listops") /
         fmt::format("v{}-{}-{}-{}-{}-{}", kListOpsVersion, source.min_length,
                     source.max_length, source.train_count, source.test_count,
                     source.seed);
}

SequenceSplits load_listops(const ListOpsSource& source) {
  if (!source.path.empty()) return read_folder(source.path, source.max_length);
  const fs::path folder = listops_folder(source);
  return load_generated(
      folder, [&] { return read_kept_set(folder, source); },
      [&](const fs::path& made) {
        SequenceSplits splits = generate_listops(source);
        write_listops_file(made / kTrainFile, splits.train);
        write_listops_file(made / kTestFile, splits.test);
        return splits;
      });
}

}  // namespace polyattn::data
