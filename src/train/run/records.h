// What a run leaves behind, and how it is read again: metrics.jsonl, one JSON
// object a line, and run.json.
//
//   RUN/config.toml      complete and replayable (train/run/config.h)
//   RUN/run.json         who ran what, where, and how it ended
//   RUN/metrics.jsonl    below
//   RUN/tokenizer.model  what made tokens of its text, if not bytes
//   RUN/maps.json        attention matrices at its end (train/attention_maps.h)
//   RUN/checkpoints/     train/checkpoint.h
//
// Lines of metrics.jsonl have a "kind" and a "step" (finished steps, from 1):
//   start  at step 0, if model.start shrank the first scores: factor, and lists
//          by layer and head: gain (of the scores), weight_before, weight
//          (norms), softmax (its norm on these scores)
//   train  epoch, loss, lr, grad_norm, seconds, items_per_second, wait_share
//   eval   epoch, loss, accuracy (classifiers), bits_per_byte (texts), seconds;
//          of equations relative_l1 and relative_l2 (errors of the solution)
//          and terms (an object: the parts of the loss by name)
//   norms  tokens (N), and arrays by layer: weight_mean, weight_max,
//          jacobian_mean, jacobian_max, max_abs_score (each a list by head),
//          grad_norm, weight_norm (one number a layer); layer_kind (token,
//          window, channel, class, cross) where one is not token; layer_stage
//          (from 0), layer_tokens (N) where layers differ
//   diverged  loss, grad_norm, what
// Everything but seconds, items_per_second and wait_share is the same for the
// same config and number of threads. Numbers that are not finite are written as
// the strings "nan", "inf", "-inf".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace polyattn::run {

// A record cannot be read or written. what() names the file.
class RecordError : public base::JsonError {
 public:
  using base::JsonError::JsonError;
};

// Appends lines to metrics.jsonl; each is handed to the system when write()
// returns.
class MetricsWriter {
 public:
  // Cuts the file to `keep_bytes` first (0: empty), which must not be more than
  // it has.
  MetricsWriter(const std::filesystem::path& path, std::int64_t keep_bytes);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // An object with kind and step. Numbers that are not finite may be in it.
  void write(const base::Json& record);

  // Forces what was written to the disk.
  void sync();

  // The size of the file.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::int64_t bytes_ = 0;
};

enum class RunState { kRunning, kFinished, kDiverged, kInterrupted };

struct Divergence {
  std::int64_t step = 0;
  std::string what;  // "norm of the attention weights of layer 2: inf"

  bool operator==(const Divergence&) const = default;
};

// By which images are normalised: of each channel, pixels from 0 to 1.
struct PixelStatistics {
  std::vector<double> mean, std;

  bool operator==(const PixelStatistics&) const = default;
};

// What the images of a run are like.
struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t size = 0;  // side
  std::int64_t classes = 0;

  bool operator==(const ImageShape&) const = default;
};

// From which model a run learned, as it was then.
struct Teacher {
  std::string run;  // its folder, as the config has it
  std::string model, activation;
  std::optional<double> accuracy;
  std::string weights;  // hash: a run that goes on has the same teacher

  bool operator==(const Teacher&) const = default;
};

// What an evaluation finds. Which figures are there depends on the task.
struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy = {};
  std::optional<double> bits_per_byte = {};
  // Of a solution: sum |u - p| / sum |u|, and the root of the same of squares.
  std::optional<double> relative_l1 = {};
  std::optional<double> relative_l2 = {};
  std::map<std::string, double> terms = {};  // of the loss

  bool operator==(const Evaluation&) const = default;
};

// Its figures as members of a record.
base::Json evaluation_json(const Evaluation& evaluation);
// The inverse. Throws base::JsonError or base::Json::exception.
Evaluation evaluation_of(const base::Json& json);

// What RunInfo::split says if it is there.
inline constexpr const char* kValidation = "validation";

// run.json.
struct RunInfo {
  RunState state = RunState::kRunning;
  std::string task;
  std::string activation;
  std::optional<std::string> model;  // model.name; older runs have none
  // The settings in which it differs from the rest of its comparison,
  // "model.start=plain"; none: it does not.
  std::optional<std::string> variant;
  std::int64_t seed = 0;
  std::int64_t step = 0;   // finished
  std::int64_t steps = 0;  // planned
  std::int64_t parameters = 0;
  std::string version;
  std::string command;
  std::string instruction_set;
  // Of attention, polyattn/plan.h: a run that goes on decides by them again.
  // Runs of before have none.
  std::optional<std::string> path_costs;
  // base/openblas.h. A run that goes on with another rounds otherwise.
  std::optional<std::string> blas;
  // polyattn/version.h; the same. Runs of before have none.
  std::optional<std::int64_t> kernel_bits;
  int threads = 0;
  std::string machine;       // the processor, and its cores
  std::string started;       // ISO 8601, UTC
  double train_seconds = 0;  // all sessions of the run together
  double eval_seconds = 0;
  double peak_mb = 0;                // resident
  std::optional<Evaluation> result;  // of the last evaluation
  std::int64_t tokens = 0;           // N of its attention
  std::int64_t test_count = 0;       // examples of the evaluation
  // Of a run on images; older ones have none.
  std::optional<PixelStatistics> pixels;
  std::optional<ImageShape> images;
  std::optional<Teacher> teacher;
  // sha256 of tokenizer.model; none: bytes are tokens.
  std::optional<std::string> tokenizer;
  std::optional<std::string> split;  // "validation"; none: the test set
  double max_weight_norm = 0;        // over layers, heads and time
  double max_jacobian_norm = 0;
  std::optional<Divergence> divergence;

  bool operator==(const RunInfo&) const = default;
};

// What is compared on its own: the task, and the model unless it is the task's
// own, "cifar10, vit-tiny32".
std::string subject_of(const RunInfo& info);

// Of a row of a comparison: "x^3{model.start=plain}", or the formula alone
// without a variant.
std::string arm_name(const std::string& activation, const std::string& variant);
std::string arm_name(const RunInfo& info);

std::string name_of(RunState state);  // running, finished, diverged, ...

void write_run_info(const std::filesystem::path& folder, const RunInfo& info);
// Throws RecordError if it is not there or damaged.
RunInfo read_run_info(const std::filesystem::path& folder);

// "accuracy 87.12 %, loss 0.353", "2.41 bits per byte" or "relative L2 error
// 0.0271, loss 1.2e-05"; for a run that diverged, where and why.
std::string outcome_text(const RunInfo& info);

}  // namespace polyattn::run
