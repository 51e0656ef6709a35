// `polyattn data`: the data sets, where they are, fetched and checked.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "data/catalogue.h"
#include "data/report.h"

namespace polyattn::cli {

class DataCommand : public Command {
 public:
  // Adds the subcommand; the parent must outlive this, and so must the sets.
  explicit DataCommand(CLI::App& parent, std::span<const data::SetEntry> sets =
                                             data::catalogue());

  int run() override;

 private:
  CLI::App* add(const char* name, const char* what);
  void add_list();
  void add_fetch();
  void add_verify();
  void add_path();
  void add_check();

  int list() const;
  int fetch() const;
  int verify() const;
  int path() const;
  int check() const;
  data::FetchedSet fetch_one(const data::SetEntry& entry) const;

  // Throws UsageError, with the nearest name, if there is none of that name.
  const data::SetEntry& set_named(const std::string& name) const;
  // Each once, in the order of the catalogue if `all` is among the names.
  std::vector<const data::SetEntry*> sets_named() const;
  // Those, or all that are there if none is named.
  std::vector<const data::SetEntry*> sets_to_verify() const;

  std::span<const data::SetEntry> sets_;
  bool json_ = false;
  bool force_ = false;
  std::filesystem::path from_;
  std::vector<std::string> names_;
  std::filesystem::path folder_;
  std::string task_ = "images";
};

}  // namespace polyattn::cli
