// Ranges, choices, and what must agree.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support.h"
#include "train/run/config.h"
#include "train/run/fields.h"

namespace polyattn::run {
namespace config_check_test {

// With the defaults of the task and these settings.
std::string refusal(const std::string& task,
                    const std::vector<std::string>& sets) {
  return test::message_of<ConfigError>([&] {
    std::vector<Setting> settings = test::settings_of(sets);
    settings.push_back({"task.name", task});
    parse_config("", "defaults", settings);
  });
}

struct OutOfRange {
  const char* set;
  const char* message;
};

TEST(ConfigRanges, AreHeld) {
  const std::vector<OutOfRange> cases = {
      OutOfRange{"train.lr=0", "train.lr is 0.0, must be above 0"},
      OutOfRange{"train.lr=-1e-3", "train.lr is -0.001, must be above 0"},
      OutOfRange{"train.lr=nan", "train.lr is nan, must be finite"},
      OutOfRange{"train.clip=inf", "train.clip is inf, must be finite"},
      OutOfRange{"train.clip=-1", "train.clip is -1.0, must be at least 0"},
      OutOfRange{"train.warmup=1",
                 "train.warmup is 1.0, must be from 0 to below 1"},
      OutOfRange{"model.dropout=1",
                 "model.dropout is 1.0, must be from 0 to below 1"},
      OutOfRange{"train.beta2=1",
                 "train.beta2 is 1.0, must be from 0 to below 1"},
      OutOfRange{"train.final_lr=1.5",
                 "train.final_lr is 1.5, must be from 0 to 1"},
      OutOfRange{"task.validation=0.6",
                 "task.validation is 0.6, must be from 0 to 0.5"},
      OutOfRange{"train.batch=0",
                 "train.batch is 0, must be from 1 to 1048576"},
      OutOfRange{"train.seed=-1", "train.seed is -1, must be at least 0"},
      OutOfRange{"train.steps=-1",
                 "train.steps is -1, must be from 0 to 1000000000"},
      OutOfRange{"model.heads=0", "model.heads is 0, must be from 1 to 65536"},
      OutOfRange{"model.depth=0", "model.depth is 0, must be from 1 to 1024"},
      OutOfRange{"model.kv_heads=-1",
                 "model.kv_heads is -1, must be from 0 to 65536"},
      OutOfRange{"model.patch=0", "model.patch is 0, must be from 1 to 4096"},
      OutOfRange{"model.qk_gain=0",
                 "model.qk_gain is 0.0, must be above 0 to 1000000"},
      OutOfRange{"record.every=0",
                 "record.every is 0, must be from 1 to 1000000000"},
      OutOfRange{"record.keep=0",
                 "record.keep is 0, must be from 1 to 1000000000"},
      OutOfRange{"augment.mixup=-0.1",
                 "augment.mixup is -0.1, must be at least 0"},
      OutOfRange{"model.norm=layr",
                 "model.norm is \"layr\", must be one of layer, rms; did you "
                 "mean layer?"},
      OutOfRange{"model.pooling=max",
                 "model.pooling is \"max\", must be one of class, mean, "
                 "padded"},
      OutOfRange{"model.qk_norm=batch",
                 "model.qk_norm is \"batch\", must be one of none, layer, "
                 "rms"},
      OutOfRange{"model.learned_coefficients=heads",
                 "model.learned_coefficients is \"heads\", must be one of "
                 "none, shared, head; did you mean head?"},
      OutOfRange{"model.short_conv=65",
                 "model.short_conv is 65, must be from 0 to 64"},
      OutOfRange{"model.output_norm=layer",
                 "model.output_norm is \"layer\", must be one of none, rms"},
      OutOfRange{"model.initialisation=kaiming",
                 "model.initialisation is \"kaiming\", must be one of torch, "
                 "vit, gpt2, xavier, pinn"},
      OutOfRange{"train.autocast=fp16",
                 "train.autocast is \"fp16\", must be one of none, bf16"}};
  for (const OutOfRange& c : cases) {
    EXPECT_EQ(refusal("mnist", {c.set}),
              std::string("[config] --set: ") + c.message);
  }
}

// Every field refuses what lies outside of its range, whatever that is.
TEST(ConfigRanges, EveryNumberHasOne) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Field& field : fields()) {
    Config config = default_config("mnist");
    const Value value = field.get(config);
    if (std::holds_alternative<double>(value)) {
      for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
        field.set(config, bad);
        EXPECT_THROW(check_config(config), ConfigError) << field.name();
      }
    } else if (std::holds_alternative<std::int64_t>(value)) {
      field.set(config, std::int64_t{-1});
      EXPECT_THROW(check_config(config), ConfigError) << field.name();
    }
  }
}

TEST(ConfigAgreement, Distillation) {
  const std::string student = "model.name=vit-distilled";
  EXPECT_EQ(refusal("mnist", {student, "train.teacher=runs/a"}), "");
  EXPECT_EQ(
      refusal("mnist", {"train.teacher=runs/a"}),
      "[config] --set: train.teacher is \"runs/a\", but the model vit has "
      "no logits to learn from it: take one whose name ends in "
      "-distilled, or XCiT");
  EXPECT_EQ(refusal("mnist", {student, "train.distillation=soft"}),
            "[config] --set: train.distillation is soft, but there is no "
            "train.teacher");
  EXPECT_EQ(refusal("mnist", {student, "train.distillation_alpha=0.25"}),
            "[config] --set: train.distillation_alpha is 0.25, but there is no "
            "train.teacher");
  EXPECT_EQ(refusal("mnist", {student, "train.teacher=runs/a",
                              "train.distillation_temperature=2"}),
            "[config] --set: train.distillation_temperature is 2, but "
            "train.distillation is hard");
  EXPECT_EQ(refusal("mnist",
                    {student, "train.teacher=runs/a", "train.distillation=soft",
                     "train.distillation_temperature=2"}),
            "");
  EXPECT_EQ(
      refusal("sotu", {"train.teacher=runs/a"}),
      "[config] --set: train.teacher means nothing to the task sotu (only "
      "to fashion-mnist, mnist, cifar10, images, imagenet, tiny-imagenet): "
      "leave it out");
}

TEST(ConfigAgreement, NormClamp) {
  EXPECT_EQ(refusal("mnist", {"model.norm_factor=2"}),
            "[config] --set: model.norm_factor is 2, but model.norm_clamp is "
            "none");
  EXPECT_EQ(
      refusal("mnist", {"model.norm_clamp=rescale", "train.norm_penalty=1"}),
      "[config] --set: train.norm_penalty is 1, but model.norm_clamp is "
      "rescale");
  EXPECT_EQ(refusal("sotu", {"model.norm_clamp=rescale"}),
            "[config] --set: model.norm_clamp means nothing to the task sotu "
            "(only to fashion-mnist, mnist, cifar10, images, imagenet, "
            "tiny-imagenet, listops, imdb, cifar10-pixels, pathfinder, aan, "
            "sotu-pairs): leave it out");
  EXPECT_EQ(
      refusal("listops", {"model.norm_clamp=penalty", "model.norm_factor=0.3",
                          "train.norm_penalty=1"}),
      "");
}

TEST(ConfigAgreement, Nystrom) {
  const std::string nystrom = "model.attention=nystrom";
  EXPECT_EQ(refusal("imdb", {nystrom}), "");
  EXPECT_EQ(
      refusal("listops",
              {nystrom, "model.landmarks=256", "model.landmark_conv=0",
               "model.landmark_inverse=exact", "model.attention_dropout=0.1"}),
      "");
  EXPECT_EQ(refusal("listops", {"model.landmarks=32"}),
            "[config] --set: model.landmarks is 32, but model.attention is "
            "full");
  EXPECT_EQ(refusal("listops", {nystrom, "model.landmarks=257"}),
            "[config] --set: model.landmarks 257 are more than the 256 tokens "
            "of task.max_length");
  EXPECT_EQ(refusal("imdb", {nystrom, "task.context=63"}),
            "[config] defaults: model.landmarks 64 are more than the 63 tokens "
            "of task.context");
  EXPECT_EQ(refusal("pathfinder", {nystrom, "model.landmarks=1024"}), "");
  EXPECT_EQ(refusal("pathfinder", {nystrom, "model.landmarks=1025"}),
            "[config] --set: model.landmarks 1025 are more than the 1024 "
            "tokens of pathfinder");
  EXPECT_EQ(refusal("sotu-pairs", {nystrom, "task.context=63"}),
            "[config] defaults: model.landmarks 64 are more than the 63 tokens "
            "of task.context");
  // How many pixels images of one's own have, they alone can tell.
  EXPECT_EQ(refusal("cifar10-pixels",
                    {nystrom, "model.landmarks=1025", "task.path=mine"}),
            "");
  EXPECT_EQ(refusal("imdb", {nystrom, "model.landmark_conv=4"}),
            "[config] --set: model.landmark_conv 4 is neither 0 nor odd");
  EXPECT_EQ(refusal("imdb", {nystrom, "model.positions=rotary"}),
            "[config] --set: model.positions is \"rotary\", but "
            "model.attention is nystrom");
  EXPECT_EQ(refusal("imdb", {nystrom, "model.short_conv=4"}),
            "[config] --set: model.short_conv is 4, but model.attention is "
            "nystrom");
  EXPECT_EQ(refusal("imdb", {nystrom, "model.landmarks=0"}),
            "[config] --set: model.landmarks is 0, must be from 1 to 65536");
  EXPECT_EQ(refusal("imdb", {"model.attention=local"}),
            "[config] --set: model.attention is \"local\", must be one of "
            "full, nystrom");
  EXPECT_EQ(refusal("sotu", {nystrom}),
            "[config] --set: model.attention means nothing to the task sotu "
            "(only to listops, imdb, cifar10-pixels, pathfinder, aan, "
            "sotu-pairs): leave it out");
}

TEST(ConfigAgreement, DimAndHeads) {
  EXPECT_EQ(refusal("mnist", {"model.dim=65"}),
            "[config] --set: model.dim 65 is not a multiple of model.heads 2");
  EXPECT_EQ(refusal("mnist", {"model.heads=3"}),
            "[config] defaults: model.dim 64 is not a multiple of model.heads "
            "3");
  EXPECT_EQ(refusal("mnist", {"model.kv_heads=3"}),
            "[config] defaults: model.heads 2 is not a multiple of "
            "model.kv_heads 3");
  EXPECT_EQ(refusal("mnist", {"model.kv_heads=8"}),
            "[config] defaults: model.heads 2 is not a multiple of "
            "model.kv_heads 8");
  EXPECT_EQ(refusal("mnist", {"model.kv_heads=2"}), "");
  EXPECT_EQ(refusal("sotu", {"model.dim=4"}),
            "[config] defaults: model.positions is rotary, which needs heads "
            "at least 2 wide, but model.dim / model.heads is 1");
}

TEST(ConfigAgreement, ShortConvolution) {
  EXPECT_EQ(refusal("mnist", {"model.short_conv=4"}),
            "[config] --set: model.short_conv 4 is neither 0 nor 3, for "
            "images");
  EXPECT_EQ(refusal("mnist", {"model.short_conv=3"}), "");
  EXPECT_EQ(refusal("sotu", {"model.short_conv=4"}), "");
  EXPECT_EQ(refusal("listops", {"model.short_conv=2"}), "");
}

TEST(ConfigAgreement, Tokenizer) {
  for (const char* good : {"bytes", "bpe:300", "unigram:65536", "a/b.model"})
    EXPECT_EQ(refusal("sotu", {std::string("task.tokenizer=") + good}), "");
  EXPECT_EQ(refusal("sotu", {"task.tokenizer=words"}),
            "[config] --set: task.tokenizer \"words\" must be bytes, bpe:N, "
            "unigram:N or a file that ends in .model");
  for (const char* pieces : {"299", "65537", "", "4k", "-1", "1e3"})
    EXPECT_EQ(refusal("text", {std::string("task.tokenizer=bpe:") + pieces}),
              std::string("[config] --set: task.tokenizer \"bpe:") + pieces +
                  "\" has " + pieces + " pieces, must have from 300 to 65536");
  EXPECT_NE(refusal("imdb", {"task.tokenizer=bpe:1000"})
                .find("task.tokenizer means nothing to the task imdb"),
            std::string::npos);
}

TEST(ConfigAgreement, Window) {
  EXPECT_EQ(refusal("sotu", {"model.window=256"}), "");
  EXPECT_EQ(refusal("sotu", {"model.window=257"}),
            "[config] --set: model.window 257 is longer than the text, "
            "task.context 256: leave it out");
  EXPECT_EQ(refusal("imdb", {"model.window=1024"}), "");
  EXPECT_EQ(refusal("imdb", {"model.window=1025"}),
            "[config] --set: model.window 1025 is longer than the text, "
            "task.context 1024: leave it out");
  EXPECT_EQ(refusal("listops", {"model.window=2001", "task.max_length=2000"}),
            "[config] --set: model.window 2001 is longer than the text, "
            "task.max_length 2000: leave it out");
  EXPECT_EQ(refusal("recall", {"model.window=64"}), "");
  EXPECT_EQ(refusal("copy", {"model.window=33", "task.length=32"}),
            "[config] --set: model.window 33 is longer than the text, "
            "task.length 32: leave it out");
  EXPECT_NE(refusal("mnist", {"model.window=8"})
                .find("model.window means nothing to the task mnist"),
            std::string::npos);
  EXPECT_EQ(refusal("sotu", {"model.window=-1"}),
            "[config] --set: model.window is -1, must be from 0 to 1048576");
  EXPECT_EQ(refusal("listops", {"model.window=8", "model.pooling=class",
                                "model.activation=softmax"}),
            "[config] --set: model.window is 8, in which a class token would "
            "see the first rows alone: model.pooling must be mean for softmax");
  EXPECT_EQ(refusal("listops", {"model.window=8", "model.pooling=class",
                                "model.activation=x^2/N"}),
            "");
  EXPECT_EQ(refusal("listops", {"model.window=8", "model.norm_clamp=penalty"}),
            "[config] --set: model.norm_clamp is penalty, but model.window is "
            "8");
}

TEST(ConfigAgreement, Decay) {
  const std::string gate = "model.decay=gate";
  const std::string square = "model.activation=x^2/sqrt(N)";
  EXPECT_EQ(refusal("sotu", {gate, square}), "");
  EXPECT_EQ(refusal("sotu", {"model.decay=head", square}), "");
  EXPECT_EQ(refusal("recall", {gate, square}), "");
  EXPECT_EQ(refusal("copy", {gate, square, "model.window=8"}), "");
  EXPECT_EQ(refusal("sotu", {gate, "model.activation=softmax"}),
            "[config] --set: model.decay is gate, but model.activation softmax "
            "is no polynomial");
  EXPECT_EQ(refusal("sotu", {gate, square, "model.center_values=true"}),
            "[config] --set: model.decay is gate, but model.center_values is "
            "true");
  EXPECT_EQ(refusal("sotu", {gate, square, "model.attention_dropout=0.1"}),
            "[config] --set: model.decay is gate, but model.attention_dropout "
            "is 0.1");
  // Its rows see later ones.
  EXPECT_EQ(refusal("imdb", {gate, square}),
            "[config] --set: model.decay means nothing to the task imdb (only "
            "to sotu, brown, text, recall, copy): leave it out");
}

TEST(ConfigAgreement, ImageAndPatch) {
  EXPECT_EQ(refusal("mnist", {"model.patch=8"}),
            "[config] --set: model.patch 8 does not divide the 28 pixels of "
            "mnist");
  EXPECT_EQ(refusal("cifar10", {"model.patch=8"}), "");
  EXPECT_EQ(refusal("cifar10", {"model.patch=7"}),
            "[config] --set: model.patch 7 does not divide the 32 pixels of "
            "cifar10");
  EXPECT_EQ(refusal("images", {"task.image_size=33"}),
            "[config] defaults: model.patch 4 does not divide task.image_size "
            "33");
  // The files of a path may be of any size.
  EXPECT_EQ(refusal("mnist", {"model.patch=8", "task.path=x"}), "");
}

TEST(ConfigAgreement, StreamedImages) {
  EXPECT_EQ(refusal("images", {"task.stream=true", "task.resize=40"}), "");
  EXPECT_EQ(refusal("images", {"task.resize=40"}),
            "[config] --set: task.resize is 40, but task.stream is false");
  EXPECT_EQ(refusal("imagenet", {"task.resize=200"}),
            "[config] --set: task.resize 200 is below task.image_size 224");
  EXPECT_EQ(refusal("imagenet", {"task.stream=false", "task.resize=0"}),
            "[config] --set: task.stream is false, but imagenet is always "
            "streamed");
  EXPECT_EQ(refusal("cifar10", {"task.stream=true"}),
            "[config] --set: task.stream is true, but cifar10 is no folder of "
            "images");
}

TEST(ConfigAgreement, Augmentation) {
  EXPECT_EQ(
      refusal("cifar10", {"augment.auto_augment=rand-inc",
                          "augment.magnitude=9", "augment.magnitude_std=0.5"}),
      "");
  EXPECT_EQ(
      refusal("cifar10", {"augment.auto_augment=ra", "augment.magnitude=15"}),
      "");
  EXPECT_EQ(
      refusal("cifar10", {"augment.auto_augment=ra", "augment.magnitude=1.5"}),
      "[config] --set: augment.magnitude is 1.5, must be an integer for "
      "ra");
  EXPECT_EQ(refusal("cifar10",
                    {"augment.auto_augment=rand-inc", "augment.magnitude=11"}),
            "[config] --set: augment.magnitude is 11, must be from 0 to 10 for "
            "rand-inc");
  EXPECT_EQ(refusal("cifar10", {"augment.magnitude=3"}),
            "[config] --set: augment.magnitude is 3, but augment.auto_augment "
            "is none");
  EXPECT_EQ(refusal("cifar10", {"augment.operations=3"}),
            "[config] --set: augment.operations is 3, but "
            "augment.auto_augment is none");
  EXPECT_EQ(refusal("cifar10", {"augment.auto_augment=ta_wide",
                                "augment.magnitude_std=0.5"}),
            "[config] --set: augment.magnitude_std is 0.5, but "
            "augment.auto_augment is ta_wide");
  EXPECT_EQ(refusal("cifar10", {"augment.crop_ratio=2"}),
            "[config] --set: augment.crop_ratio is 2, but augment.crop_scale "
            "is 0");
  EXPECT_EQ(refusal("cifar10", {"augment.erase_value=noise"}),
            "[config] --set: augment.erase_value is noise, but augment.erase "
            "is 0");
}

TEST(ConfigAgreement, StepsOrEpochs) {
  EXPECT_EQ(refusal("mnist", {"train.epochs=0"}),
            "[config] --set: train.epochs and train.steps are both 0: one must "
            "be above 0");
  EXPECT_EQ(refusal("mnist", {"train.epochs=0", "train.steps=1"}), "");
}

TEST(ConfigAgreement, Lengths) {
  EXPECT_EQ(refusal("listops", {"task.min_length=300"}),
            "[config] --set: task.min_length 300 is above task.max_length 256");
}

TEST(ConfigAgreement, LongRangeArena) {
  EXPECT_EQ(refusal("pathfinder", {"task.contour_length=9"}), "");
  EXPECT_EQ(refusal("pathfinder", {"task.contour_length=15"}),
            "[config] --set: task.contour_length is 15, must be from 3 to 14");
  EXPECT_EQ(refusal("sotu-pairs", {"task.contour_length=9"}),
            "[config] --set: task.contour_length means nothing to the task "
            "sotu-pairs (only to pathfinder): leave it out");
  EXPECT_EQ(refusal("aan", {"task.train_count=9"}),
            "[config] --set: task.train_count means nothing to the task aan "
            "(only to listops, pathfinder, sotu-pairs, recall, copy): leave it "
            "out");
  EXPECT_EQ(refusal("cifar10-pixels", {"model.patch=2"}),
            "[config] --set: model.patch means nothing to the task "
            "cifar10-pixels (only to fashion-mnist, mnist, cifar10, images, "
            "imagenet, tiny-imagenet): leave it out");
  EXPECT_EQ(refusal("cifar10-pixels", {"model.window=1025"}),
            "[config] --set: model.window 1025 is longer than the text, "
            "cifar10-pixels 1024: leave it out");
}

TEST(ConfigAgreement, HeadsAndPoolingOfSequences) {
  EXPECT_EQ(refusal("imdb", {"model.pooling=padded", "model.head=mlp",
                             "model.mask_zeros=true"}),
            "");
  EXPECT_EQ(refusal("imdb", {"model.pooling=padded", "model.positions=rotary"}),
            "[config] --set: model.pooling is padded, but model.positions is "
            "rotary: learned ones say how long a padded sequence is");
  EXPECT_EQ(refusal("mnist", {"model.pooling=padded"}),
            "[config] --set: model.pooling is padded, which is for sequences: "
            "take mean");
  EXPECT_NE(refusal("mnist", {"model.head=mlp"}), "");
  EXPECT_NE(refusal("sotu", {"model.mask_zeros=true"}), "");
}

TEST(ConfigAgreement, KeysThatTheTaskIgnores) {
  EXPECT_EQ(
      refusal("sotu", {"augment.flip=true"}),
      "[config] --set: augment.flip means nothing to the task sotu (only "
      "to fashion-mnist, mnist, cifar10, images, imagenet, tiny-imagenet): "
      "leave it out");
  EXPECT_EQ(refusal("mnist", {"task.context=100"}),
            "[config] --set: task.context means nothing to the task mnist "
            "(only to sotu, brown, text, imdb, aan, sotu-pairs): leave it out");
  EXPECT_EQ(refusal("cifar10", {"model.positions=rotary"}),
            "[config] --set: model.positions means nothing to the task cifar10 "
            "(only to sotu, brown, text, listops, imdb, cifar10-pixels, "
            "pathfinder, aan, sotu-pairs, recall, copy): leave it out");
  // With its default it may stand there, as in the config.toml of a run.
  EXPECT_EQ(refusal("sotu", {"augment.flip=false"}), "");
}

TEST(ConfigActivation, ErrorsPointAtTheColumn) {
  EXPECT_EQ(refusal("mnist", {"model.activation=x^^3"}),
            "[config] --set: model.activation: [formula] a power is a whole "
            "number, as in x^3\n"
            "    x^^3\n"
            "      ^");
  EXPECT_NE(refusal("mnist", {"model.activation="}), "");
  EXPECT_NE(refusal("mnist", {"model.activation=softmx"}), "");
}

// Attention is computed in f32: such a run would train without the term.
TEST(ConfigActivation, CoefficientsMustNotVanishInF32) {
  EXPECT_EQ(refusal("mnist", {"model.activation=x + 1e-60 x^3"}),
            "[config] --set: model.activation is x + 1e-60 x^3, whose "
            "coefficient 1e-60 of x^3 is zero in f32");
  EXPECT_EQ(refusal("mnist", {"model.activation=x^2/1e60"}),
            "[config] --set: model.activation is x^2/1e60, whose coefficient "
            "1e-60 of x^2 is zero in f32");
  EXPECT_EQ(refusal("mnist", {"model.activation=1e-60 relu/N"}),
            "[config] --set: model.activation is 1e-60 relu/N, whose factor "
            "1e-60 is zero in f32");
  EXPECT_EQ(refusal("mnist", {"model.activation=1e-30 x^2"}), "");
}

TEST(ConfigActivation, LearnedCoefficientsAreForPolynomials) {
  const std::string learned = "model.learned_coefficients=head";
  EXPECT_EQ(refusal("mnist", {learned, "model.activation=sigmoid"}),
            "[config] --set: model.learned_coefficients is head, but "
            "model.activation sigmoid is no polynomial");
  EXPECT_NE(refusal("mnist", {learned}), "");
  EXPECT_EQ(refusal("mnist", {learned, "model.activation=x^3/sqrt(N)"}), "");
}

TEST(ConfigCheck, NamesTheKeyWithoutASource) {
  Config config = default_config("mnist");
  config.train.lr = 0;
  config.model.norm = "x";
  EXPECT_EQ(test::message_of<ConfigError>([&] { check_config(config); }),
            "[config] 2 problems:\n"
            "  model.norm is \"x\", must be one of layer, rms\n"
            "  train.lr is 0.0, must be above 0");
  config = default_config("mnist");
  config.task.name = "cifar";
  EXPECT_EQ(
      test::message_of<ConfigError>([&] { check_config(config); }),
      "[config] task.name is \"cifar\", must be one of fashion-mnist, "
      "mnist, cifar10, images, imagenet, tiny-imagenet, sotu, brown, text, "
      "listops, imdb, cifar10-pixels, pathfinder, aan, sotu-pairs, recall, "
      "copy, convection, reaction, wave, heat, poisson, problem; did you mean "
      "cifar10?");
}

TEST(ConfigAgreement, ProbesHaveRoomForWhatIsAsked) {
  EXPECT_EQ(refusal("recall", {"task.length=32", "task.pairs=8"}), "");
  EXPECT_EQ(
      refusal("recall", {"task.length=30", "task.pairs=8"}),
      "[config] --set: task.length 30 has no room for task.pairs 8 and as "
      "many questions, which take 32");
  EXPECT_EQ(
      refusal("copy", {"task.length=31"}),
      "[config] --set: task.length 31 is odd: a probe has an even length");
  EXPECT_EQ(refusal("copy", {"record.lengths=32,65"}),
            "[config] --set: record.lengths 65 is odd: a probe has an even "
            "length");
  EXPECT_NE(refusal("copy", {"task.pairs=4"}), "");
  EXPECT_NE(refusal("copy", {"task.context=64"}), "");
}

TEST(ConfigAgreement, LengthsAreNumbersThatTheModelCanRead) {
  EXPECT_EQ(refusal("sotu", {"record.lengths=256,16384"}), "");
  EXPECT_EQ(
      refusal("sotu", {"record.lengths=256,x"}),
      "[config] --set: record.lengths: \"x\" is no length: numbers from 1 "
      "to 1048576, as 256,1024,4096");
  EXPECT_EQ(refusal("sotu", {"record.lengths=128", "model.positions=learned"}),
            "");
  EXPECT_EQ(
      refusal("sotu", {"record.lengths=128,512", "model.positions=learned"}),
      "[config] --set: record.lengths has 512, but model.positions are "
      "learned for task.context 256 alone");
  EXPECT_NE(refusal("listops", {"record.lengths=128"}), "");
}

TEST(ConfigAgreement, LbfgsIsForEquations) {
  EXPECT_EQ(refusal("cifar10", {"train.optimizer=lbfgs"}),
            "[config] --set: train.optimizer means nothing to the task cifar10 "
            "(only to convection, reaction, wave, heat, poisson, problem): "
            "leave it out");
  EXPECT_EQ(refusal("wave", {"train.history_size=20"}), "");
  EXPECT_EQ(refusal("wave", {"train.adam_steps=20", "train.lr=1e-4"}), "");
  EXPECT_EQ(refusal("wave", {"train.optimizer=adamw", "train.ema=0.9"}), "");
  EXPECT_EQ(refusal("wave", {"train.ema=0.9"}),
            "[config] --set: train.ema is 0.9, but train.optimizer is lbfgs, "
            "which needs the same loss in every step: leave it at 0.0");
}

TEST(ConfigAgreement, EquationsHeedWhatTheirModelsHave) {
  EXPECT_EQ(refusal("wave", {"task.points=11", "model.dim=16"}), "");
  EXPECT_EQ(refusal("wave", {"task.points=2"}),
            "[config] --set: task.points is 2, must be 0 or at least 3");
  EXPECT_EQ(refusal("problem", {"task.path=a.toml"}), "");
  EXPECT_EQ(refusal("wave", {"task.path=a.toml"}),
            "[config] --set: task.path is \"a.toml\", but wave is a problem of "
            "its own: task.name must be problem for a file");
  EXPECT_NE(refusal("wave", {"train.batch=64"}), "");
  EXPECT_NE(refusal("wave", {"model.norm=rms"}), "");
  EXPECT_EQ(refusal("wave", {"model.name=pinn", "model.mlp=64"}), "");
  EXPECT_EQ(refusal("wave", {"model.name=pinn", "model.activation=x^3"}),
            "[config] --set: model.activation means nothing to the model pinn, "
            "which has no attention: leave it at \"softmax\"");
}

}  // namespace config_check_test
}  // namespace polyattn::run
