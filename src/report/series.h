// The curves of a run: its lines of metrics.jsonl as tables, thinned on the way
// so that a file of any length takes a bounded amount of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/thin.h"
#include "train/run/records.h"

namespace polyattn::report {

// What is shown of a run at most, when there are few.
inline constexpr std::size_t kMaxPoints = 2000;

// Columns of the tables.
inline constexpr std::size_t kTrainLoss = 0, kTrainGradNorm = 1, kTrainRate = 2,
                             kTrainItems = 3, kTrainSeconds = 4,
                             kTrainWidth = 5;
inline constexpr std::size_t kMaxTerms = 8;
inline constexpr std::size_t kEvalLoss = 0, kEvalAccuracy = 1, kEvalBits = 2,
                             kEvalErrors = 3, kEvalRelativeL1 = kEvalErrors,
                             kEvalRelativeL2 = kEvalErrors + 1,
                             kEvalTerms = kEvalErrors + 2,
                             kEvalWidth = kEvalTerms + kMaxTerms;

// A record of norms, flat. First the largest of each kind over layers and
// heads, which decide what is kept, then the number of tokens, then the layers:
// two numbers and five for each head.
class NormsLayout {
 public:
  static constexpr std::size_t kDeciding = 4, kTokens = 4, kFirstLayer = 5;
  static constexpr std::size_t kLayerNumbers = 2, kHeadNumbers = 5;

  explicit NormsLayout(std::vector<std::size_t> heads);

  std::size_t layers() const { return heads_.size(); }
  std::size_t heads(std::size_t layer) const { return heads_[layer]; }
  std::size_t layer_column(std::size_t layer) const { return starts_[layer]; }
  std::size_t head_column(std::size_t layer, std::size_t head) const {
    return starts_[layer] + kLayerNumbers + head * kHeadNumbers;
  }
  std::size_t width() const { return width_; }
  bool operator==(const NormsLayout& other) const {
    return heads_ == other.heads_;
  }

 private:
  std::vector<std::size_t> heads_;
  std::vector<std::size_t> starts_;
  std::size_t width_ = kFirstLayer;
};

// What a layer of a model of many kinds is.
struct LayerFacts {
  std::string kind;         // of its attention; empty: all are alike
  std::int64_t stage = -1;  // from 0; -1: there is one
  double tokens = 0;        // keys of a row; 0: those of the record
};

struct NormsTable {
  NormsLayout layout;
  std::vector<LayerFacts> facts;  // as the first record says
  ThinTable table;
};

class RunSeries {
 public:
  RunSeries();

  // A line of metrics.jsonl, without its end. Throws base::JsonError, with
  // nothing added, if it is no record or does not fit those before it. Kinds
  // that are not shown are accepted.
  void add(std::string_view line);

  const ThinTable& train() const { return train_; }
  const ThinTable& eval() const { return eval_; }
  const std::optional<NormsTable>& norms() const { return norms_; }
  // How the heads started, as JSON text (docs/report.md); empty without it.
  const std::string& start() const { return start_; }

  // Whether every evaluation has it.
  bool has_accuracy() const { return accuracies_ == eval_.total(); }
  bool has_bits() const { return bits_ == eval_.total(); }
  bool has_errors() const {
    return relative_l1_ == eval_.total() && relative_l2_ == eval_.total();
  }
  // Names of the parts of the loss that every evaluation has, in the order of
  // their columns: letters, digits, _ and - alone.
  const std::vector<std::string>& terms() const { return terms_; }

  // Of the last record; 0 without any.
  std::int64_t last_step() const { return last_step_; }

 private:
  void add_train(std::int64_t step, const base::Json& record);
  void add_eval(std::int64_t step, const base::Json& record);
  void add_norms(std::int64_t step, const base::Json& record);
  void add_start(std::int64_t step, const base::Json& record);

  ThinTable train_;
  ThinTable eval_;
  std::optional<NormsTable> norms_;
  std::string start_;
  std::size_t accuracies_ = 0;
  std::size_t bits_ = 0;
  std::size_t relative_l1_ = 0;
  std::size_t relative_l2_ = 0;
  std::vector<std::string> terms_;
  std::int64_t last_step_ = 0;
};

}  // namespace polyattn::report
