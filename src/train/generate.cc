#include "train/generate.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "data/tokenizer.h"
#include "polyattn/models/gpt.h"
#include "train/loaded_run.h"
#include "train/run/tasks.h"
#include "train/sampling.h"
#include "train/text_tokens.h"

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

// The tokens of a run's texts, there and back.
class TextTokenizer {
 public:
  TextTokenizer(const std::filesystem::path& folder,
                const run::Config& config) {
    std::string model = tokenizer_of(folder, config.task);
    if (!model.empty()) pieces_.emplace(std::move(model), "tokenizer.model");
  }

  std::int64_t vocabulary() const {
    return pieces_ ? std::ssize(pieces_->pieces()) : 256;
  }

  std::vector<std::int64_t> encode(const std::string& text) const {
    std::vector<std::int64_t> tokens;
    if (!pieces_) {
      for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
      return tokens;
    }
    const std::vector<std::int32_t> found = pieces_->encode(text);
    return {found.begin(), found.end()};
  }

  std::string bytes_of(std::int64_t token) const {
    if (!pieces_) return {static_cast<char>(token)};
    return pieces_->pieces()[static_cast<std::size_t>(token)];
  }

  // Tokens that stand for no text were never learned, and are not drawn.
  void remove_marks(torch::Tensor& logits) const {
    if (!pieces_) return;
    const std::vector<std::string>& pieces = pieces_->pieces();
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].empty())
        logits.data_ptr<float>()[i] = -std::numeric_limits<float>::infinity();
  }

 private:
  std::optional<data::Tokenizer> pieces_;
};

// Keeps what stands for the text that was read, and begins again where the
// window ends.
class Reader {
 public:
  Reader(models::GptImpl& model, DecodeMode mode, std::int64_t window)
      : model_(model),
        mode_(mode),
        window_(window),
        caches_(model.make_decode_caches(mode)) {}

  // Logits of the token that follows.
  torch::Tensor read(const std::vector<std::int64_t>& text) {
    const std::int64_t all = std::ssize(text);
    if (window_ > 0 && caches_.front().length() + all - done_ > window_) {
      caches_ = model_.make_decode_caches(mode_);
      done_ = all - std::min(all, (window_ + 1) / 2);
    }
    const torch::Tensor tokens = torch::empty({1, all - done_}, torch::kLong);
    std::copy(text.begin() + done_, text.end(),
              tokens.data_ptr<std::int64_t>());
    done_ = all;
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
  std::int64_t done_ = 0;  // tokens of the text that were read
};

// Tokens a second, by tenths of the bytes that are written.
class Speeds {
 public:
  explicit Speeds(std::int64_t all) : all_(all) {}

  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  // After which so many bytes are written.
  void add_token(std::int64_t bytes) {
    ++done_;
    if (bytes * kParts < all_ * std::ssize(found_) + all_) return;
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

// Whether the text stops within its last token: then it ends behind `stop`.
bool has_stop(std::string_view text, std::size_t last,
              const std::string& stop) {
  const std::size_t from =
      text.size() - std::min(text.size(), last + stop.size() - 1);
  return text.find(stop, from) != std::string_view::npos;
}

}  // namespace

GenerateResult generate(const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& show) {
  at::set_num_threads(options.threads);
  const torch::NoGradGuard no_grad;
  const run::Config config = run::read_run_config(options.folder);
  check(options, config);
  const TextTokenizer tokenizer(options.folder, config);
  const TaskShape shape{.vocabulary = tokenizer.vocabulary(),
                        .length = config.task.context,
                        .classes = tokenizer.vocabulary(),
                        .text = true};
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
  std::vector<std::int64_t> tokens =
      tokenizer.encode(options.prompt.empty() ? "\n" : options.prompt);
  std::string& text = result.text;
  Speeds speeds(options.bytes);
  while (std::ssize(text) < options.bytes) {
    torch::Tensor logits = reader.read(tokens).to(torch::kFloat);
    check_finite(logits, loaded.step);
    tokenizer.remove_marks(logits);
    const std::int64_t token = draw_token(
        {logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())},
        sampling, random);
    tokens.push_back(token);
    ++result.tokens;
    const std::string piece = tokenizer.bytes_of(token);
    text += piece;
    speeds.add_token(std::ssize(text));
    if (!show(piece)) break;
    if (!options.stop.empty() && has_stop(text, piece.size(), options.stop))
      break;
  }
  reader.describe(result);
  result.seconds = speeds.seconds();
  result.speeds = speeds.found();
  return result;
}

}  // namespace polyattn::train
