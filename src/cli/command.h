// A subcommand of polyattn.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

namespace polyattn::cli {

class Command {
 public:
  // The app must outlive this.
  explicit Command(CLI::App* app) : app_(app) {}
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Whether the parsed command line asks for it.
  bool chosen() const { return app_->parsed(); }

  // Does what the parsed options ask for, and gives the exit code. Throws
  // base::UsageError or another std::exception.
  virtual int run() = 0;

 protected:
  CLI::App* app_;
};

// Of the commands that are in other programs than that which lists them.
inline constexpr const char* kAboutCompare =
    "Train one model under several activations and seeds";
inline constexpr const char* kAboutExperiment =
    "Run the comparisons that test a claim";
inline constexpr const char* kAboutTrain = "Train one model";
inline constexpr const char* kAboutEval = "Evaluate a run on its test set";
inline constexpr const char* kAboutGenerate =
    "Write text with a language model";
inline constexpr const char* kAboutBench =
    "Measure attention against OpenBLAS or libtorch";

using Commands = std::vector<std::unique_ptr<Command>>;

}  // namespace polyattn::cli
