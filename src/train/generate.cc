#include "train/generate.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "polyattn/models/gpt.h"
#include "train/loaded_run.h"
#include "train/run/tasks.h"
#include "train/sampling.h"

namespace polyattn::train {
namespace {

constexpr std::int64_t kMostBytes = 1'000'000'000;

void check(const GenerateOptions& options, const run::Config& config) {
  const run::TaskEntry* const task = run::find_task(config.task.name);
  if (task == nullptr || task->kind != run::kTexts) {
    throw std::invalid_argument("[generate] " + options.folder.string() +
                                " was trained on " + config.task.name +
                                ", which is no text");
  }
  const auto require = [](bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
  };
  // Comparisons that NaN fails.
  require(options.bytes >= 0 && options.bytes <= kMostBytes,
          "[generate] --bytes must be in 0 .. 1000000000");
  require(options.temperature >= 0 && std::isfinite(options.temperature),
          "[generate] --temperature must be a finite number, at least 0");
  require(options.top_k >= 0, "[generate] --top-k must be at least 0");
  require(options.top_p > 0 && options.top_p <= 1,
          "[generate] --top-p must be above 0 and at most 1");
}

// Draws from logits that are not finite would be of no worth.
void check_finite(const torch::Tensor& logits, std::int64_t step) {
  if (logits.isfinite().all().item<bool>()) return;
  throw std::runtime_error(
      "[generate] the model computes numbers that are not finite: " +
      (step < 0 ? "the best weights"
                : "the weights of step " + std::to_string(step)) +
      " are damaged or overflow");
}

// True if sums over features may stand for what was read.
bool has_sums(const run::Config& config, DecodeMode mode) {
  if (mode == DecodeMode::kCache) return false;
  try {
    const DecodeState probe(
        {.d = 1, .e = 1},
        {.activation = Activation::parse(config.model.activation),
         .mode = DecodeMode::kSums});
    return true;
  } catch (const std::invalid_argument&) {
    if (mode == DecodeMode::kSums) throw;
    return false;
  }
}

// True if what stands for the text does not grow with it: softmax keeps the
// rows of its window.
bool is_bounded(const run::Config& config, DecodeMode mode) {
  const ActivationKind kind = Activation::parse(config.model.activation).kind;
  if (kind == ActivationKind::kSoftmax && config.model.window > 0) return true;
  return has_sums(config, mode);
}

std::int64_t window_of(const GenerateOptions& options,
                       const run::Config& config, std::int64_t context) {
  const bool learned = config.model.positions == "learned";
  if (!options.window)
    return !learned && is_bounded(config, options.mode) ? 0 : context;
  if (*options.window < 0 ||
      (learned && (*options.window == 0 || *options.window > context))) {
    throw std::invalid_argument(
        "[generate] a window of " + std::to_string(*options.window) +
        (learned ? " is not in 1 .. " + std::to_string(context) +
                       ", the context for which positions were learned"
                 : " is negative"));
  }
  return *options.window;
}

// Keeps what stands for the text that was read, and begins again where the
// window ends.
class Reader {
 public:
  Reader(models::GptImpl& model, DecodeMode mode, std::int64_t window)
      : model_(model),
        mode_(mode),
        window_(window),
        caches_(model.make_decode_caches(mode)) {}

  // Logits of the byte that follows.
  torch::Tensor read(const std::string& text) {
    std::string_view fresh(text);
    if (window_ > 0 && caches_.front().length() +
                               static_cast<std::int64_t>(fresh.size()) - done_ >
                           window_) {
      caches_ = model_.make_decode_caches(mode_);
      const auto keep = static_cast<std::size_t>((window_ + 1) / 2);
      done_ = static_cast<std::int64_t>(fresh.size() -
                                        std::min(fresh.size(), keep));
    }
    fresh.remove_prefix(static_cast<std::size_t>(done_));
    const auto count = static_cast<std::int64_t>(fresh.size());
    torch::Tensor tokens = torch::empty({1, count}, torch::kLong);
    for (std::int64_t i = 0; i < count; ++i) {
      tokens.data_ptr<std::int64_t>()[i] =
          static_cast<unsigned char>(fresh[static_cast<std::size_t>(i)]);
    }
    done_ += count;
    return model_.forward(tokens, caches_).select(1, -1).squeeze(0);
  }

  void describe(GenerateResult& result) const {
    for (const nn::DecodeCache& cache : caches_)
      result.state_bytes += static_cast<std::int64_t>(cache.bytes());
    result.sums = caches_.front().folded() > 0;
  }

 private:
  models::GptImpl& model_;
  DecodeMode mode_;
  std::int64_t window_;
  std::vector<nn::DecodeCache> caches_;
  std::int64_t done_ = 0;  // bytes of the text that were read
};

// Tokens a second, by tenths of what is written.
class Speeds {
 public:
  explicit Speeds(std::int64_t all) : all_(all) {}

  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  void add_token() {
    ++done_;
    if (done_ * kParts < all_ * std::ssize(found_) + all_) return;
    const double now = seconds();
    found_.push_back(static_cast<double>(done_ - done_before_) /
                     (now - seconds_before_));
    done_before_ = done_;
    seconds_before_ = now;
  }

  const std::vector<double>& found() const { return found_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kParts = 10;

  std::int64_t all_;
  Clock::time_point start_ = Clock::now();
  std::int64_t done_ = 0, done_before_ = 0;
  double seconds_before_ = 0;
  std::vector<double> found_;
};

}  // namespace

GenerateResult generate(const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& show) {
  at::set_num_threads(options.threads);
  const torch::NoGradGuard no_grad;
  const run::Config config = run::read_run_config(options.folder);
  check(options, config);
  const TaskShape shape = shape_of(data::TextSplits{}, config.task);
  const LoadedRun loaded =
      load_run(options.folder, config, shape, options.best);
  const std::int64_t window = window_of(options, config, shape.length);
  Reader reader(*loaded.network->module().as<models::GptImpl>(), options.mode,
                window);
  Random random(options.seed, Stream::kSampling, 0);
  const SamplingOptions sampling{options.temperature, options.top_k,
                                 options.top_p};

  GenerateResult result;
  result.step = loaded.step;
  result.window = window;
  result.context = shape.length;
  std::string text = options.prompt.empty() ? "\n" : options.prompt;
  const std::size_t first = text.size();
  Speeds speeds(options.bytes);
  while (static_cast<std::int64_t>(text.size() - first) < options.bytes) {
    const torch::Tensor logits = reader.read(text).to(torch::kFloat);
    check_finite(logits, loaded.step);
    const std::int64_t token = draw_token(
        {logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())},
        sampling, random);
    text.push_back(static_cast<char>(token));
    speeds.add_token();
    if (!show(std::string_view(text).substr(text.size() - 1))) break;
    if (!options.stop.empty() &&
        std::string_view(text).substr(first).ends_with(options.stop)) {
      break;
    }
  }
  reader.describe(result);
  result.text = text.substr(first);
  result.seconds = speeds.seconds();
  result.speeds = speeds.found();
  return result;
}

}  // namespace polyattn::train
