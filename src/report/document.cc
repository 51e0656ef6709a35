#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/json_text.h"
#include "base/machine.h"
#include "polyattn/version.h"
#include "report/comparisons.h"
#include "report/files.h"
#include "report/grids.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

using base::Json;

constexpr std::size_t kMaxExtraBytes = 16 << 20;
constexpr std::size_t kMaxTitleBytes = 300;
// If one input of each activation takes more than this, some have none.
constexpr std::size_t kMaxAllMapsBytes = 8 << 20;
// Of a grid of 101 x 101 points one takes 56 KB.
constexpr std::size_t kMaxAllSolutionsBytes = 2 << 20;

// The text of a JSON file, on one line.
std::string extra_text(const std::filesystem::path& path, bool list) {
  if (path.empty()) return "null";
  Json json;
  try {
    json = base::parse_json(read_file(path, kMaxExtraBytes, {}));
  } catch (const base::JsonError& error) {
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", path.string(), error.what()));
  }
  // polyattn theory --run prints an object too, but of other things.
  const bool right = list ? json.is_array() || json.is_object()
                          : json.is_object() && json.contains("claims");
  if (!right) {
    throw std::runtime_error(
        fmt::format("cannot read {}: it is not what polyattn {} --json prints",
                    path.string(), list ? "bench" : "theory"));
  }
  return base::printed(json);
}

void sort_by_start(std::vector<RunFiles*>& runs) {
  std::sort(runs.begin(), runs.end(), [](const auto* a, const auto* b) {
    return std::tie(a->facts().info.started, a->facts().name) <
           std::tie(b->facts().info.started, b->facts().name);
  });
}

// Of each activation and variant the first run that has it; the others forget
// what they read.
template <typename Has, typename Forget>
std::vector<RunFiles*> first_of_each(const std::vector<RunFiles*>& runs,
                                     const Has& has, const Forget& forget) {
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<RunFiles*> chosen;
  for (RunFiles* run : runs) {
    const run::RunInfo& info = run->facts().info;
    const std::pair key(run::subject_of(info), run::arm_name(info));
    if (seen.count(key) > 0 || !has(*run)) {
      forget(*run);
      continue;
    }
    seen.insert(key);
    chosen.push_back(run);
  }
  return chosen;
}

}  // namespace

DocumentBuilder::DocumentBuilder(DocumentOptions options)
    : options_(std::move(options)),
      theory_(extra_text(options_.theory, false)),
      bench_(extra_text(options_.bench, true)) {}

// Of each activation and variant the first run that has maps shows them, with
// as many inputs as fit into its share of half the document.
void DocumentBuilder::choose_maps(const std::vector<RunFiles*>& runs,
                                  std::map<RunFiles*, Shown>& shown) const {
  const std::vector<RunFiles*> chosen = first_of_each(
      runs, [](RunFiles& run) { return run.maps() != nullptr; },
      [](RunFiles& run) { run.forget_maps(); });
  std::size_t used = 0;
  for (RunFiles* run : chosen) {
    const Maps& maps = *run->maps();
    const std::size_t inputs =
        maps.inputs_within(options_.max_bytes / 2 / chosen.size());
    used += maps.bytes(inputs);
    if (used > kMaxAllMapsBytes) break;
    shown[run].inputs = inputs;
    shown[run].bytes += maps.bytes(inputs);
  }
}

void DocumentBuilder::choose_solutions(const std::vector<RunFiles*>& runs,
                                       std::map<RunFiles*, Shown>& shown) {
  std::size_t used = 0;
  for (RunFiles* run : first_of_each(
           runs, [](RunFiles& run) { return run.solution() != nullptr; },
           [](RunFiles& run) { run.forget_solution(); })) {
    const std::size_t bytes = run->solution()->size();
    used += bytes;
    if (used > kMaxAllSolutionsBytes) break;
    shown[run].solution = true;
    shown[run].bytes += bytes;
  }
}

const std::string& DocumentBuilder::piece(RunFiles& run,
                                          const RunBudget& budget,
                                          const Shown& shown) {
  Piece& piece = pieces_[run.facts().name];
  if (piece.folder != run.folder() || piece.version != run.version() ||
      !(piece.budget == budget) || !(piece.shown == shown)) {
    const Maps* maps = shown.inputs > 0 ? run.maps() : nullptr;
    const std::string* solution = shown.solution ? run.solution() : nullptr;
    piece = {run.folder(), run.version(), budget, shown,
             run_json(run.facts(), run.series(), budget,
                      maps != nullptr ? maps->text(shown.inputs) : "null",
                      solution != nullptr ? *solution : "null")};
  }
  return piece.text;
}

std::string DocumentBuilder::runs_text(const std::vector<RunFiles*>& runs,
                                       std::size_t bytes) {
  std::map<RunFiles*, Shown> shown;
  choose_maps(runs, shown);
  choose_solutions(runs, shown);
  std::size_t large = 0;
  for (const auto& [run, chosen] : shown) large += chosen.bytes;
  const std::size_t limit = bytes > large ? bytes - large : 0;
  if (std::exchange(lowered_for_, runs.size()) != runs.size()) lowered_ = 0;
  // Estimates of how long numbers are may be wrong; then there are fewer.
  constexpr int kMaxLowered = 8;
  while (true) {
    const double share = std::pow(0.75, lowered_);
    const RunBudget budget =
        run_budget(static_cast<std::size_t>(static_cast<double>(limit) * share),
                   runs.size());
    std::string text;
    for (RunFiles* run : runs) {
      text += text.empty() ? "" : ",";
      text += piece(*run, budget, shown[run]);
    }
    if (text.size() <= limit + large || lowered_ == kMaxLowered) {
      return text;
    }
    ++lowered_;
  }
}

void DocumentBuilder::forget_others(const std::vector<RunFiles*>& runs) {
  std::set<std::string> names;
  for (const RunFiles* run : runs) names.insert(run->facts().name);
  std::erase_if(pieces_, [&](const auto& entry) {
    return names.count(entry.first) == 0;
  });
}

std::string DocumentBuilder::build(std::vector<RunFiles*> runs) {
  sort_by_start(runs);
  const Comparisons comparisons =
      compare_all(std::vector<const RunFiles*>(runs.begin(), runs.end()));
  Json head;
  head["schema"] = kSchema;
  head["polyattn"] =
      fmt::format("{}.{}.{}", kVersionMajor, kVersionMinor, kVersionPatch);
  head["generated"] = base::utc_now();
  head["live"] = options_.live;
  const bool extras_alone = runs.empty() && !options_.live;
  const std::string title =
      extras_alone ? "Theory and speed" : comparisons.title;
  head["title"] =
      cut_text(options_.title.empty() ? title : options_.title, kMaxTitleBytes);
  head["verdict"] = comparisons.verdict;
  head["comparisons"] = comparisons.json;
  head["grids"] = grids_of(runs);
  std::string text = base::printed(head);
  text.pop_back();  // its brace
  const std::size_t used = text.size() + 100;
  const std::string shown = runs_text(
      runs, options_.max_bytes > used ? options_.max_bytes - used : 0);
  text += ",\"runs\":[" + shown + "],\"theory\":" + theory_ +
          ",\"bench\":" + bench_ + "}";
  forget_others(runs);
  return text;
}

Document make_document(const std::vector<std::filesystem::path>& folders,
                       const DocumentOptions& options) {
  DocumentBuilder builder(options);
  Search search = find_runs(folders);
  Document document;
  document.warnings = std::move(search.warnings);
  std::vector<std::unique_ptr<RunFiles>> files;
  std::vector<RunFiles*> readable;
  for (const FoundRun& found : search.runs) {
    files.push_back(std::make_unique<RunFiles>(found, std::filesystem::path()));
    files.back()->refresh();
    if (files.back()->readable()) readable.push_back(files.back().get());
  }
  document.runs = readable.size();
  const bool wanted =
      !folders.empty() || (options.theory.empty() && options.bench.empty());
  if (!readable.empty() || !wanted) document.text = builder.build(readable);
  for (const auto& run : files) {
    for (std::string& warning : run->warnings()) {
      document.warnings.push_back(std::move(warning));
    }
  }
  if (!document.text.empty()) return document;
  std::string message =
      "there is no run to report on: a run is a folder with "
      "run.json, as polyattn train and compare write it";
  for (const std::string& warning : document.warnings) {
    message += "\n  " + printable(warning);
  }
  throw std::runtime_error(message);
}

}  // namespace polyattn::report
