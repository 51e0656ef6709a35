#include "train/run/fields.h"

#include <algorithm>
#include <array>

#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

template <auto kSection, auto kMember>
Slot slot_of(Config& config) {
  return &(config.*kSection.*kMember);
}
template <auto kMember>
constexpr auto kTask = slot_of<&Config::task, kMember>;
template <auto kMember>
constexpr auto kModel = slot_of<&Config::model, kMember>;
template <auto kMember>
constexpr auto kTrain = slot_of<&Config::train, kMember>;
template <auto kMember>
constexpr auto kAugment = slot_of<&Config::augment, kMember>;
template <auto kMember>
constexpr auto kRecord = slot_of<&Config::record, kMember>;

constexpr Range at_least(double low) { return {.low = low}; }
constexpr Range above(double low) { return {.low = low, .without_low = true}; }
constexpr Range from_to(double low, double high) {
  return {.low = low, .high = high};
}
// Shares and probabilities of which there must be a rest.
constexpr Range kRate = {.low = 0, .high = 1, .without_high = true};

// Beyond these nobody means it, and products of sizes stay within 64 bits.
constexpr Range kSize = from_to(1, 65536);
constexpr Range kCount = from_to(1, 1e9);
constexpr Range kCountOrNone = from_to(0, 1e9);

// Tasks that make as many examples as they are told.
constexpr unsigned kMade = kListOps | kPathfinder | kSotuPairs | kProbes;

using Words = std::string_view;
constexpr auto kTaskNames = [] {
  std::array<Words, kTasks.size()> names;
  std::transform(kTasks.begin(), kTasks.end(), names.begin(),
                 [](const TaskEntry& task) { return task.name; });
  return names;
}();
constexpr std::array<Words, 3> kPoolings = {"class", "mean", "padded"};
constexpr std::array<Words, 2> kHeads = {"linear", "mlp"};
constexpr std::array<Words, 2> kPositions = {"learned", "rotary"};
constexpr std::array<Words, 2> kNorms = {"layer", "rms"};
constexpr std::array<Words, 3> kQkNorms = {"none", "layer", "rms"};
constexpr std::array<Words, 2> kOutputNorms = {"none", "rms"};
constexpr std::array<Words, 3> kDecays = {"none", "head", "gate"};
constexpr std::array<Words, 3> kLearned = {"none", "shared", "head"};
constexpr std::array<Words, 2> kStarts = {"matched", "plain"};
constexpr std::array<Words, 3> kNormClamps = {"none", "rescale", "penalty"};
constexpr std::array<Words, 5> kSchemes = {"torch", "vit", "gpt2", "xavier",
                                           "pinn"};
constexpr std::array<Words, 2> kAttentions = {"full", "nystrom"};
constexpr std::array<Words, 2> kInverses = {"iterative", "exact"};
constexpr std::array<Words, 2> kScalings = {"matrix", "batch"};
constexpr std::array<Words, 2> kOptimizers = {"adamw", "lbfgs"};
constexpr std::array<Words, 2> kAutocasts = {"none", "bf16"};
constexpr std::array<Words, 2> kInterpolations = {"bilinear", "bicubic"};
constexpr std::array<Words, 4> kPolicies = {"none", "ra", "rand-inc",
                                            "ta_wide"};
constexpr std::array<Words, 2> kEraseValues = {"zero", "noise"};
constexpr std::array<Words, 2> kDistillations = {"hard", "soft"};

// clang-format off
constexpr Field kFields[] = {
    {"task", "name", kTask<&TaskConfig::name>,
     "what is learned", {}, kTaskNames},
    {"task", "path", kTask<&TaskConfig::path>,
     "where the data is; empty: the data cache"},
    {"task", "validation", kTask<&TaskConfig::validation>,
     "share of the training data to evaluate on instead of the test set; 0: none",
     from_to(0, 0.5), {}, kExamples},
    {"task", "train_limit", kTask<&TaskConfig::train_limit>,
     "use only so many training examples; 0: all", kCountOrNone, {}, kExamples},
    {"task", "test_limit", kTask<&TaskConfig::test_limit>,
     "evaluate on only so many examples; 0: all", kCountOrNone, {}, kExamples},
    {"task", "image_size", kTask<&TaskConfig::image_size>,
     "images from a folder are scaled to this", from_to(1, 4096), {}, kImages},
    {"task", "stream", kTask<&TaskConfig::stream>,
     "decode images when they are needed, not all beforehand", {}, {}, kImages},
    {"task", "resize", kTask<&TaskConfig::resize>,
     "shorter side of a streamed image whose middle is cut out; 0: image_size",
     from_to(0, 4096), {}, kImages},
    {"task", "interpolation", kTask<&TaskConfig::interpolation>,
     "of streamed images and of augmentation", {}, kInterpolations, kImages},
    {"task", "tokenizer", kTask<&TaskConfig::tokenizer>,
     "tokens of a text: bytes; bpe:N or unigram:N, pieces learned from it; "
     "or a FILE.model of sentencepiece", {}, {}, kTexts},
    {"task", "context", kTask<&TaskConfig::context>,
     "tokens of an example; longer reviews and papers are cut",
     from_to(1, 1 << 20), {}, kTexts | kImdb | kPairs},
    {"task", "min_length", kTask<&TaskConfig::min_length>,
     "shortest expression, in tokens", kSize, {}, kListOps},
    {"task", "max_length", kTask<&TaskConfig::max_length>,
     "longest expression, in tokens", kSize, {}, kListOps},
    {"task", "length", kTask<&TaskConfig::length>,
     "tokens of an example, an even number", from_to(2, 65536), {}, kProbes},
    {"task", "pairs", kTask<&TaskConfig::pairs>,
     "keys with values to remember", from_to(1, 64), {}, kRecall},
    {"task", "contour_length", kTask<&TaskConfig::contour_length>,
     "paddles of a path; 14 and 9 are the published sets",
     from_to(3, 14), {}, kPathfinder},
    {"task", "train_count", kTask<&TaskConfig::train_count>,
     "examples to train on", from_to(1, 1e8), {}, kMade},
    {"task", "test_count", kTask<&TaskConfig::test_count>,
     "examples to test on", from_to(1, 1e8), {}, kMade},
    {"task", "points", kTask<&TaskConfig::points>,
     "points of the grid along each coordinate; 0: those of the problem",
     from_to(0, 512), {}, kPhysics},
    {"task", "test_points", kTask<&TaskConfig::test_points>,
     "the same of the grid that is evaluated on", from_to(0, 512), {},
     kPhysics},

    {"model", "name", kModel<&ModelConfig::name>,
     "which model; a named size decides the keys of sizes"},
    {"model", "activation", kModel<&ModelConfig::activation>,
     "formula of the attention weights, as x^3/sqrt(N)"},
    {"model", "attention", kModel<&ModelConfig::attention>,
     "rows see all keys, or landmarks for them", {}, kAttentions, kSequences},
    {"model", "landmarks", kModel<&ModelConfig::landmarks>,
     "landmarks of nystrom, each the mean of consecutive rows",
     from_to(1, 65536), {}, kSequences},
    {"model", "landmark_conv", kModel<&ModelConfig::landmark_conv>,
     "width of the convolution of v beside nystrom, odd; 0: none",
     from_to(0, 65536), {}, kSequences},
    {"model", "landmark_inverse", kModel<&ModelConfig::landmark_inverse>,
     "pseudo-inverse of nystrom: six steps, or from singular values",
     {}, kInverses, kSequences},
    {"model", "landmark_scaling", kModel<&ModelConfig::landmark_scaling>,
     "first divisor of the six steps: of each matrix, or of the batch",
     {}, kScalings, kSequences},
    {"model", "dim", kModel<&ModelConfig::dim>,
     "width of the rows, a multiple of heads", kSize},
    {"model", "depth", kModel<&ModelConfig::depth>,
     "blocks", from_to(1, 1024)},
    {"model", "heads", kModel<&ModelConfig::heads>,
     "heads of the queries", kSize},
    {"model", "kv_heads", kModel<&ModelConfig::kv_heads>,
     "heads of keys and values, a divisor of heads; 0: as many",
     from_to(0, 65536), {}, kExamples},
    {"model", "mlp", kModel<&ModelConfig::mlp>,
     "hidden width of the mlp", from_to(1, 1 << 20)},
    {"model", "patch", kModel<&ModelConfig::patch>,
     "side of a patch, in pixels", from_to(1, 4096), {}, kImages},
    {"model", "pooling", kModel<&ModelConfig::pooling>,
     "what the head reads: the class token, the mean of all rows, or their sum "
     "over the longest length",
     {}, kPoolings, kImages | kSequences},
    {"model", "head", kModel<&ModelConfig::head>,
     "what gives the classes: one layer, or two with relu between",
     {}, kHeads, kSequences},
    {"model", "mask_zeros", kModel<&ModelConfig::mask_zeros>,
     "token 0 is padding wherever it stands", {}, {}, kSequences},
    {"model", "positions", kModel<&ModelConfig::positions>,
     "how rows know their place", {}, kPositions, kLanguage | kSequences},
    {"model", "norm", kModel<&ModelConfig::norm>,
     "norm before attention and mlp", {}, kNorms, kExamples},
    {"model", "qk_norm", kModel<&ModelConfig::qk_norm>,
     "norm of each row of q and k", {}, kQkNorms, kExamples},
    {"model", "learned_scale", kModel<&ModelConfig::learned_scale>,
     "learn the scale of the scores, one for each head", {}, {}, kExamples},
    {"model", "learned_coefficients", kModel<&ModelConfig::learned_coefficients>,
     "learn the polynomial: one for all heads, or one for each",
     {}, kLearned, kExamples},
    {"model", "output_norm", kModel<&ModelConfig::output_norm>,
     "norm of each head's output, before the projection", {}, kOutputNorms,
     kExamples},
    {"model", "output_gate", kModel<&ModelConfig::output_gate>,
     "multiply the heads' output by a sigmoid of the row", {}, {}, kExamples},
    {"model", "center_values", kModel<&ModelConfig::center_values>,
     "attend to v less its mean, and add the mean again", {}, {}, kExamples},
    {"model", "decay", kModel<&ModelConfig::decay>,
     "weights of earlier tokens fade: by a number for each head, or by a gate "
     "for each token",
     {}, kDecays, kLanguage},
    {"model", "short_conv", kModel<&ModelConfig::short_conv>,
     "width of a convolution of q, k and v, of v for images; 0: none",
     from_to(0, 64), {}, kExamples},
    {"model", "window", kModel<&ModelConfig::window>,
     "rows near its own that softmax sees, alone or beside a polynomial; 0: all",
     from_to(0, 1 << 20), {}, kLanguage | kSequences},
    {"model", "layer_scale", kModel<&ModelConfig::layer_scale>,
     "first value of the layer scales; 0: none", from_to(0, 100), {}, kExamples},
    {"model", "initialisation", kModel<&ModelConfig::initialisation>,
     "first values of the weights", {}, kSchemes},
    {"model", "start", kModel<&ModelConfig::start>,
     "first scores of what is not softmax: scaled to its norm, or as drawn",
     {}, kStarts},
    {"model", "start_factor", kModel<&ModelConfig::start_factor>,
     "share of softmax's norm that a matched start has",
     {.low = 0, .high = 1e6, .without_low = true}},
    {"model", "qk_gain", kModel<&ModelConfig::qk_gain>,
     "factor of the first weights of q and k",
     {.low = 0, .high = 1e6, .without_low = true}},
    {"model", "norm_clamp", kModel<&ModelConfig::norm_clamp>,
     "hold the norms of attention at softmax's: by rescaling, or in the loss",
     {}, kNormClamps, kImages | kSequences},
    {"model", "norm_factor", kModel<&ModelConfig::norm_factor>,
     "share of softmax's norm at which norm_clamp holds it",
     {.low = 0, .high = 1e6, .without_low = true}, {}, kImages | kSequences},
    {"model", "dropout", kModel<&ModelConfig::dropout>,
     "dropout of embedding, attention output and mlp", kRate, {}, kExamples},
    {"model", "attention_dropout", kModel<&ModelConfig::attention_dropout>,
     "dropout of the attention weights", kRate, {}, kExamples},
    {"model", "drop_path", kModel<&ModelConfig::drop_path>,
     "share of branches dropped in the last block", kRate, {}, kExamples},
    {"model", "tied", kModel<&ModelConfig::tied>,
     "the table of the tokens is the output layer too", {}, {}, kLanguage},

    {"train", "seed", kTrain<&TrainConfig::seed>,
     "decides first weights, order and augmentation", at_least(0)},
    {"train", "threads", kTrain<&TrainConfig::threads>,
     "threads; 0: all cores", from_to(0, 4096)},
    {"train", "workers", kTrain<&TrainConfig::workers>,
     "threads that decode and augment images; 0: as many as train.threads",
     from_to(0, 4096), {}, kImages},
    {"train", "epochs", kTrain<&TrainConfig::epochs>,
     "passes over the training data", from_to(0, 1e6), {}, kExamples},
    {"train", "steps", kTrain<&TrainConfig::steps>,
     "above 0: instead of epochs", kCountOrNone},
    {"train", "batch", kTrain<&TrainConfig::batch>,
     "examples in a batch", from_to(1, 1 << 20), {}, kExamples},
    {"train", "accumulate", kTrain<&TrainConfig::accumulate>,
     "batches in a step", from_to(1, 65536), {}, kExamples},
    {"train", "optimizer", kTrain<&TrainConfig::optimizer>,
     "AdamW, or L-BFGS with a strong Wolfe line search",
     {}, kOptimizers, kPhysics},
    {"train", "history_size", kTrain<&TrainConfig::history_size>,
     "steps that L-BFGS remembers", from_to(1, 10000), {}, kPhysics},
    {"train", "line_search_steps", kTrain<&TrainConfig::line_search_steps>,
     "evaluations of the loss in a step of L-BFGS, at most",
     from_to(1, 1000), {}, kPhysics},
    {"train", "adam_steps", kTrain<&TrainConfig::adam_steps>,
     "steps of AdamW before L-BFGS", kCountOrNone, {}, kPhysics},
    {"train", "lr", kTrain<&TrainConfig::lr>,
     "largest learning rate", above(0)},
    {"train", "final_lr", kTrain<&TrainConfig::final_lr>,
     "share of lr that is left at the end", from_to(0, 1)},
    {"train", "warmup", kTrain<&TrainConfig::warmup>,
     "share of the steps in which lr grows", kRate},
    {"train", "weight_decay", kTrain<&TrainConfig::weight_decay>,
     "weight decay of AdamW", at_least(0)},
    {"train", "beta1", kTrain<&TrainConfig::beta1>,
     "decay of the mean gradient, of AdamW", kRate},
    {"train", "beta2", kTrain<&TrainConfig::beta2>,
     "decay of the mean square gradient, of AdamW", kRate},
    {"train", "eps", kTrain<&TrainConfig::eps>,
     "added to the divisor, of AdamW", above(0)},
    {"train", "clip", kTrain<&TrainConfig::clip>,
     "largest norm of the gradient; 0: any", at_least(0)},
    {"train", "label_smoothing", kTrain<&TrainConfig::label_smoothing>,
     "share of the target given to all classes alike", kRate, {}, kExamples},
    {"train", "norm_penalty", kTrain<&TrainConfig::norm_penalty>,
     "weight in the loss of norm_clamp = penalty",
     above(0), {}, kImages | kSequences},
    {"train", "ema", kTrain<&TrainConfig::ema>,
     "decay of averaged weights, which are then tested; 0: none", kRate},
    {"train", "teacher", kTrain<&TrainConfig::teacher>,
     "folder of the run whose model the student learns from; empty: none",
     {}, {}, kImages},
    {"train", "distillation", kTrain<&TrainConfig::distillation>,
     "what it learns: the teacher's class, or all of its probabilities",
     {}, kDistillations, kImages},
    {"train", "distillation_alpha", kTrain<&TrainConfig::distillation_alpha>,
     "share of the loss that is the teacher's", from_to(0, 1), {}, kImages},
    {"train", "distillation_temperature",
     kTrain<&TrainConfig::distillation_temperature>,
     "divides the logits of soft distillation",
     {.low = 0, .high = 1e6, .without_low = true}, {}, kImages},
    {"train", "autocast", kTrain<&TrainConfig::autocast>,
     "lower precision where torch holds it safe", {}, kAutocasts, kExamples},

    {"augment", "flip", kAugment<&AugmentConfig::flip>,
     "mirror half of the images", {}, {}, kImages},
    {"augment", "crop", kAugment<&AugmentConfig::crop>,
     "shift images by up to so many pixels", from_to(0, 4096), {}, kImages},
    {"augment", "mixup", kAugment<&AugmentConfig::mixup>,
     "alpha of mixup; 0: none", at_least(0), {}, kImages},
    {"augment", "cutmix", kAugment<&AugmentConfig::cutmix>,
     "alpha of cutmix; 0: none; with mixup one of the two for each batch",
     at_least(0), {}, kImages},
    {"augment", "crop_scale", kAugment<&AugmentConfig::crop_scale>,
     "random resized crop: least share of the area; 0: none",
     from_to(0, 1), {}, kImages},
    {"augment", "crop_ratio", kAugment<&AugmentConfig::crop_ratio>,
     "random resized crop: widest sides, and highest", from_to(1, 100), {},
     kImages},
    {"augment", "auto_augment", kAugment<&AugmentConfig::auto_augment>,
     "policy: RandAugment of torchvision, of timm, TrivialAugmentWide",
     {}, kPolicies, kImages},
    {"augment", "operations", kAugment<&AugmentConfig::operations>,
     "operations that ra and rand-inc apply", from_to(1, 100), {}, kImages},
    {"augment", "magnitude", kAugment<&AugmentConfig::magnitude>,
     "of ra a bin of 0 to 30, of rand-inc from 0 to 10", from_to(0, 30), {},
     kImages},
    {"augment", "magnitude_std", kAugment<&AugmentConfig::magnitude_std>,
     "deviation of the magnitude of rand-inc", from_to(0, 100), {}, kImages},
    {"augment", "color_jitter", kAugment<&AugmentConfig::color_jitter>,
     "brightness, contrast and saturation change by up to this; 0: none",
     from_to(0, 100), {}, kImages},
    {"augment", "hue", kAugment<&AugmentConfig::hue>,
     "the hue turns by up to so many circles; 0: none", from_to(0, 0.5), {},
     kImages},
    {"augment", "erase", kAugment<&AugmentConfig::erase>,
     "share of the images of which a part is erased", from_to(0, 1), {},
     kImages},
    {"augment", "erase_value", kAugment<&AugmentConfig::erase_value>,
     "what is put there: the mean, or noise", {}, kEraseValues, kImages},
    {"augment", "repeats", kAugment<&AugmentConfig::repeats>,
     "times that an epoch has each of its images, one after the other",
     from_to(1, 1024), {}, kImages},

    {"record", "every", kRecord<&RecordConfig::every>,
     "steps between records of the loss", kCount},
    {"record", "norms", kRecord<&RecordConfig::norms>,
     "steps between records of the norms; 0: none", kCountOrNone},
    {"record", "evaluate", kRecord<&RecordConfig::evaluate>,
     "steps between evaluations; 0: every epoch", kCountOrNone},
    {"record", "checkpoint", kRecord<&RecordConfig::checkpoint>,
     "steps between checkpoints; 0: at the end", kCountOrNone},
    {"record", "keep", kRecord<&RecordConfig::keep>,
     "checkpoints kept beside the best", kCount},
    {"record", "lengths", kRecord<&RecordConfig::lengths>,
     "lengths to evaluate at in the end, as 256,1024,4096; empty: none",
     {}, {}, kLanguage},
    {"record", "tensorboard", kRecord<&RecordConfig::tensorboard>,
     "write event files for TensorBoard too"},
};
// clang-format on

constexpr std::array<Words, 5> kSections = {"task", "model", "train", "augment",
                                            "record"};

}  // namespace

std::span<const Field> fields() { return kFields; }

bool is_retired(std::string_view section, std::string_view key) {
  return section == "model" && key == "fused";
}

const char* why_shared(std::string_view name) {
  if (name == "model.activation") return "formulas are named by themselves";
  if (name == "model.name") return "activations are compared in one model";
  if (name == "train.seed") return "every setting has the same seeds";
  if (name == "train.threads" || name == "train.workers") {
    return "it decides how fast, not how well";
  }
  if (name.starts_with("task.")) return "it decides what is learned and tested";
  if (name.starts_with("record.")) return "it decides what is recorded";
  return nullptr;
}

const Field* find_field(std::string_view section, std::string_view key) {
  const auto* const found = std::find_if(
      std::begin(kFields), std::end(kFields),
      [&](const Field& f) { return f.section == section && f.key == key; });
  return found == std::end(kFields) ? nullptr : found;
}

std::span<const std::string_view> section_names() { return kSections; }

}  // namespace polyattn::run
