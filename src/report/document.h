// The report document: everything that the page shows, as one JSON object. Its
// schema is in docs/report.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/run_files.h"
#include "report/run_json.h"

namespace polyattn::report {

inline constexpr int kSchema = 1;

// Of the whole page. Attention maps and solutions may make it longer: of each
// activation at least one input is shown.
inline constexpr std::size_t kMaxPageBytes = 2'000'000;

struct DocumentOptions {
  std::string title = {};  // empty: made from the runs
  // What `polyattn theory --json` and `polyattn bench --json` printed.
  std::filesystem::path theory = {};
  std::filesystem::path bench = {};
  bool live = false;
  // Curves are thinned until the document has no more bytes than this, theory
  // and bench apart.
  std::size_t max_bytes = kMaxPageBytes;
};

// Puts documents together again and again, as runs change.
class DocumentBuilder {
 public:
  // Reads theory and bench. Throws std::runtime_error if they are not JSON of
  // the right kind.
  explicit DocumentBuilder(DocumentOptions options);

  // Runs that are readable, in any order; they are shown in the order in which
  // they were started.
  std::string build(std::vector<RunFiles*> runs);

 private:
  // What a run shows that is large.
  struct Shown {
    std::size_t inputs = 0;  // of the maps
    bool solution = false;
    std::size_t bytes = 0;  // of both

    bool operator==(const Shown&) const = default;
  };

  struct Piece {
    std::filesystem::path folder;
    std::int64_t version = -1;
    RunBudget budget;
    Shown shown;
    std::string text;
  };

  void choose_maps(const std::vector<RunFiles*>& runs,
                   std::map<RunFiles*, Shown>& shown) const;
  static void choose_solutions(const std::vector<RunFiles*>& runs,
                               std::map<RunFiles*, Shown>& shown);
  std::string runs_text(const std::vector<RunFiles*>& runs, std::size_t bytes);
  const std::string& piece(RunFiles& run, const RunBudget& budget,
                           const Shown& shown);
  void forget_others(const std::vector<RunFiles*>& runs);

  DocumentOptions options_;
  std::string theory_ = "null";
  std::string bench_ = "null";
  std::map<std::string, Piece> pieces_;  // by name
  // How often the budget had to be lowered for this number of runs: there is no
  // need to find out again each time.
  std::size_t lowered_for_ = 0;
  int lowered_ = 0;
};

struct Document {
  std::string text;
  std::size_t runs = 0;
  std::vector<std::string> warnings;  // what was left out, and why
};

// From run folders, as find_runs() takes them, or from none if theory or bench
// is given. Throws std::runtime_error if there is no run that can be read.
Document make_document(const std::vector<std::filesystem::path>& folders,
                       const DocumentOptions& options);

}  // namespace polyattn::report
