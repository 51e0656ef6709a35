// What a run is told: every choice, each with a default, as TOML.
//
// The defaults depend on the task: default_config("cifar10") is complete.
// A file or --set changes some of them. What a run writes into its folder is
// the complete list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::run {

// A config cannot be read or says something impossible. what() reads
// "[config] source:line:column: message" where there is a line; if there are
// several problems, "[config] 2 problems:" and one on each line that follows.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TaskConfig {
  std::string name = "fashion-mnist";
  std::string path;  // empty: the data cache
  // Share of the training data that is held out and evaluated on instead of the
  // test set; 0: none.
  double validation = 0;
  // 0: all. Otherwise only so many examples, for quick trials.
  std::int64_t train_limit = 0;
  std::int64_t test_limit = 0;
  // Images from a folder are scaled to this.
  std::int64_t image_size = 32;
  // Files of images are decoded when they are needed, not all beforehand. Then
  // the shorter side is scaled to `resize` (0: image_size) before the middle is
  // cut out.
  bool stream = false;
  std::int64_t resize = 0;
  std::string interpolation = "bilinear";
  // What the tokens of a text are (train/run/tokenizer.h).
  std::string tokenizer = "bytes";
  // Tokens in a training example of a text; the longest review of imdb and text
  // of aan; a passage of sotu-pairs.
  std::int64_t context = 256;
  // ListOps.
  std::int64_t min_length = 16;
  std::int64_t max_length = 256;
  // Probes: tokens of an example, and keys with values in it (recall).
  std::int64_t length = 64;
  std::int64_t pairs = 8;
  // Paddles of a path of Pathfinder.
  std::int64_t contour_length = 14;
  // What is generated or drawn: ListOps, Pathfinder, pairs of passages, probes.
  std::int64_t train_count = 96000;
  std::int64_t test_count = 2000;
  // Differential equations: points of the grids along each coordinate; 0: those
  // of the problem.
  std::int64_t points = 0;
  std::int64_t test_points = 0;

  bool operator==(const TaskConfig&) const = default;
};

struct ModelConfig {
  // Which (train/run/models.h). A named size decides others of these keys.
  std::string name = "vit";
  std::string activation = "softmax";
  // full, nystrom; and of nystrom (polyattn/nn/nystrom_attention.h):
  std::string attention = "full";
  std::int64_t landmarks = 64;
  std::int64_t landmark_conv = 35;  // width; 0: none
  std::string landmark_inverse = "iterative";
  std::string landmark_scaling = "matrix";
  std::int64_t dim = 64;
  std::int64_t depth = 4;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;  // 0: heads
  std::int64_t mlp = 256;     // hidden width
  std::int64_t patch = 4;     // images
  std::string pooling = "class";
  std::string head = "linear";  // or mlp: two layers
  bool mask_zeros = false;      // token 0 is padding wherever it stands
  std::string positions = "learned";
  std::string norm = "layer";
  std::string qk_norm = "none";
  bool learned_scale = false;
  std::string learned_coefficients = "none";
  std::string output_norm = "none";
  bool output_gate = false;
  bool center_values = false;
  std::string decay = "none";
  std::int64_t short_conv = 0;  // width; 0: none
  std::int64_t window = 0;      // rows that softmax sees; 0: all
  double layer_scale = 0;       // 0: none
  std::string initialisation = "vit";
  // matched, plain; and for matched, what share of softmax's norm.
  std::string start = "matched";
  double start_factor = 0.3;
  double qk_gain = 1;
  // none, rescale, penalty; and at what share of softmax's norm.
  std::string norm_clamp = "none";
  double norm_factor = 1;
  double dropout = 0;
  double attention_dropout = 0;
  double drop_path = 0;
  bool tied = true;

  bool operator==(const ModelConfig&) const = default;
};

struct TrainConfig {
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // 0: all cores
  std::int64_t workers = 0;  // that make batches of images; 0: as many
  std::int64_t epochs = 2;
  std::int64_t steps = 0;  // above 0: instead of epochs
  std::int64_t batch = 128;
  std::int64_t accumulate = 1;  // batches in a step
  // adamw, lbfgs; and of lbfgs (train/lbfgs.h):
  std::string optimizer = "adamw";
  std::int64_t history_size = 100;      // pairs kept
  std::int64_t line_search_steps = 25;  // evaluations in a step
  std::int64_t adam_steps = 0;          // steps of AdamW before it
  double lr = 1e-3;
  double final_lr = 0.01;  // share of lr at the end
  double warmup = 0.1;     // share of the steps
  double weight_decay = 0.05;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double clip = 1;  // largest gradient norm; 0: none
  double label_smoothing = 0;
  double norm_penalty = 0.1;          // weight of model.norm_clamp = "penalty"
  double ema = 0;                     // decay of the averaged weights; 0: none
  std::string teacher;                // the folder of a run; empty: none
  std::string distillation = "hard";  // or soft
  double distillation_alpha = 0.5;    // the teacher's share of the loss
  double distillation_temperature = 1;
  std::string autocast = "none";  // or bf16

  bool operator==(const TrainConfig&) const = default;
};

struct AugmentConfig {
  bool flip = false;
  std::int64_t crop = 0;  // padding in pixels
  double mixup = 0;       // alpha; 0: none
  double cutmix = 0;      // alpha; 0: none
  // Random resized crop: the least share of the area, 0: none; and the widest
  // sides.
  double crop_scale = 0;
  double crop_ratio = 4.0 / 3;
  std::string auto_augment = "none";  // augment/policy.h
  std::int64_t operations = 2;
  double magnitude = 9;
  double magnitude_std = 0;
  double color_jitter = 0;  // strength; 0: none
  double hue = 0;
  double erase = 0;  // share of the images
  std::string erase_value = "zero";
  std::int64_t repeats = 1;  // of an image in an epoch

  bool operator==(const AugmentConfig&) const = default;
};

struct RecordConfig {
  std::int64_t every = 20;        // steps between records of the loss
  std::int64_t norms = 50;        // steps between records of the norms; 0: none
  std::int64_t evaluate = 0;      // steps between evaluations; 0: every epoch
  std::int64_t checkpoint = 200;  // steps between checkpoints; 0: at the end
  std::int64_t keep = 2;          // checkpoints beside the best
  std::string lengths;            // to evaluate at in the end; empty: none
  bool tensorboard = false;

  bool operator==(const RecordConfig&) const = default;
};

struct Config {
  TaskConfig task;
  ModelConfig model;
  TrainConfig train;
  AugmentConfig augment;
  RecordConfig record;

  bool operator==(const Config&) const = default;
};

// fashion-mnist, mnist, cifar10, images, imagenet, tiny-imagenet, sotu, brown,
// text, listops, imdb, cifar10-pixels, pathfinder, aan, sotu-pairs, recall,
// copy, convection, reaction, wave, heat, poisson, problem.
const std::vector<std::string>& task_names();

// Of the task with this model; empty: with its own. Throws ConfigError with the
// nearest name if there is no such task, or the task no such model.
Config default_config(std::string_view task, std::string_view model = {});

// "train.lr=3e-4": keys as in the file, values as TOML writes them. A value
// that is no TOML is taken as a string, so that quotes can be left out:
// model.activation=x^3/sqrt(N).
struct Setting {
  std::string key;
  std::string value;
};
Setting parse_setting(std::string_view text);

// The defaults of the task and the model that the text or the settings name,
// changed by the text, then by the settings, and checked. `source` is what
// messages call it.
Config parse_config(std::string_view text, std::string_view source,
                    const std::vector<Setting>& settings = {});
Config read_config(const std::filesystem::path& path,
                   const std::vector<Setting>& settings = {});

// The same for what a run wrote into its folder. Keys that are missing are
// younger than the run, and mean what was done then: model.start is plain.
Config parse_run_config(std::string_view text, std::string_view source,
                        const std::vector<Setting>& settings = {});
Config read_run_config(const std::filesystem::path& folder,
                       const std::vector<Setting>& settings = {});

// Ranges, and what must agree. A key that means nothing to the task must have
// its default, so that no choice is ignored in silence. Throws ConfigError that
// names the key.
void check_config(const Config& config);

// Every key with its value, with comments: parse_config() of it gives the same.
std::string config_text(const Config& config);

// The keys in which they differ: "train.lr is 0.002, not 0.001" where `a` has
// 0.002.
std::vector<std::string> config_differences(const Config& a, const Config& b);

// config_text() into a file that appears whole or not at all. Throws
// ConfigError.
void write_config(const std::filesystem::path& path, const Config& config);

// Every key that the task heeds, its default with this model and what it means,
// for --help.
std::string describe_config(std::string_view task, std::string_view model = {});

}  // namespace polyattn::run
