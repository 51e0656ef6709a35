// Students: the loss by hand, what they learn, and teachers that are refused.
#include "train/teacher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "polyattn/models/deit.h"
#include "polyattn/models/swin.h"
#include "polyattn/models/xcit.h"
#include "support/message_of.h"
#include "support/records.h"
#include "train/loaded_run.h"
#include "train/run/models.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::teacher_test {

namespace fs = std::filesystem;
using polyattn::test::message_of;
using polyattn::test::timeless;
using testing::image_config;
using testing::image_data;
using testing::TemporaryFolder;

// Of f32, by sums of a few terms near 1.
constexpr double kRounding = 1e-6;

torch::Tensor logits_of(std::initializer_list<double> values) {
  return torch::tensor(std::vector<double>(values), torch::kFloat).view({2, 3});
}

// A batch of two examples of three classes, and logits that are logarithms, so
// that their probabilities can be read: p = (1, 2, 5) / 8 and (2, 1, 1) / 4.
struct Example {
  Example() { batch.targets = torch::tensor({0, 2}, torch::kLong); }
  double log_2 = std::log(2.0), log_5 = std::log(5.0), log_3 = std::log(3.0);
  models::DistilledLogits student = {
      logits_of({log_3, 0, 0, log_2, log_2, 0}),  // (3, 1, 1)/5, (2, 2, 1)/5
      logits_of({0, log_2, log_5, log_2, 0, 0})};
  torch::Tensor teacher = logits_of({0, 0, log_2, 0, log_2, 0});
  Batch batch;
};

double by_labels() { return -(std::log(0.6) + std::log(0.2)) / 2; }

TEST(DistillationLoss, HardIsByTheTeachersClass) {
  const Example e;
  run::TrainConfig train;
  train.distillation_alpha = 0.25;
  // Classes 2 and 1, whose probabilities are 5/8 and 1/4.
  const double by_teacher = -(std::log(5.0 / 8) + std::log(1.0 / 4)) / 2;
  EXPECT_NEAR(
      distillation_loss(e.student, e.teacher, e.batch, train).item<double>(),
      0.75 * by_labels() + 0.25 * by_teacher, kRounding);
}

TEST(DistillationLoss, SoftIsByItsProbabilities) {
  const Example e;
  run::TrainConfig train;
  train.distillation = "soft";
  train.distillation_alpha = 0.5;
  const auto divergence = [](std::vector<double> t, std::vector<double> s) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += t[i] * std::log(t[i] / s[i]);
    return sum;
  };
  // Over batch times classes.
  const double at_1 =
      (divergence({0.25, 0.25, 0.5}, {1.0 / 8, 2.0 / 8, 5.0 / 8}) +
       divergence({0.25, 0.5, 0.25}, {0.5, 0.25, 0.25})) /
      6;
  EXPECT_NEAR(
      distillation_loss(e.student, e.teacher, e.batch, train).item<double>(),
      0.5 * by_labels() + 0.5 * at_1, kRounding);
  // Square roots of all weights, made to sum to 1 again, and four times that.
  train.distillation_temperature = 2;
  train.distillation_alpha = 1;
  const auto roots = [](std::vector<double> weights) {
    double sum = 0;
    for (double& weight : weights) sum += weight = std::sqrt(weight);
    for (double& weight : weights) weight /= sum;
    return weights;
  };
  const double at_2 = 4 *
                      (divergence(roots({1, 1, 2}), roots({1, 2, 5})) +
                       divergence(roots({1, 2, 1}), roots({2, 1, 1}))) /
                      6;
  EXPECT_NEAR(
      distillation_loss(e.student, e.teacher, e.batch, train).item<double>(),
      at_2, kRounding);
}

// The labels' share is what it is without a teacher.
TEST(DistillationLoss, LabelsAreSmoothedAndMixed) {
  Example e;
  e.batch.others = torch::tensor({1, 1}, torch::kLong);
  e.batch.share = 0.7;
  run::TrainConfig train;
  train.distillation_alpha = 0;
  train.label_smoothing = 0.1;
  EXPECT_EQ(
      distillation_loss(e.student, e.teacher, e.batch, train).item<double>(),
      loss_of(e.student.head, e.batch, 0.1).item<double>());
}

TEST(DistillationLoss, FlowsIntoTheStudentAlone) {
  Example e;
  for (auto* logits : {&e.student.head, &e.student.head_dist, &e.teacher}) {
    logits->set_requires_grad(true);
  }
  for (const char* kind : {"hard", "soft"}) {
    run::TrainConfig train;
    train.distillation = kind;
    distillation_loss(e.student, e.teacher.detach(), e.batch, train).backward();
    EXPECT_GT(e.student.head.grad().abs().sum().item<double>(), 0);
    EXPECT_GT(e.student.head_dist.grad().abs().sum().item<double>(), 0);
  }
}

// The registry and the options of the models say the same.
TEST(NamedModels, HaveTheSizesOfTheirOptions) {
  const auto expect_sizes = [](const std::string& name,
                               const models::ViTOptions& options) {
    const run::ModelEntry* const entry = run::find_model(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->sizes.dim, options.block().dim()) << name;
    EXPECT_EQ(entry->sizes.depth, options.depth()) << name;
    EXPECT_EQ(entry->sizes.heads, options.block().attention().heads()) << name;
    EXPECT_EQ(entry->sizes.mlp, options.block().mlp().hidden()) << name;
    EXPECT_EQ(entry->sizes.patch, options.patch_size()) << name;
    EXPECT_EQ(entry->distilled, options.distilled()) << name;
  };
  for (const std::string& size : models::vit_names()) {
    expect_sizes("vit-" + size, models::vit_options(size));
  }
  for (const std::string& size : models::deit_names()) {
    expect_sizes("deit-" + size, models::deit_options(size));
  }
  std::size_t swins = 0;
  for (const run::ModelEntry& entry : run::models()) {
    if (entry.family != run::ModelFamily::kSwin) continue;
    ++swins;
    const auto options = models::swin_options(std::string(entry.options));
    EXPECT_EQ(entry.sizes.dim, options.dim()) << entry.name;
    EXPECT_EQ(entry.sizes.depth,
              std::accumulate(options.depths().begin(), options.depths().end(),
                              std::int64_t{0}))
        << entry.name;
    EXPECT_EQ(entry.sizes.heads, options.heads().front()) << entry.name;
    EXPECT_EQ(entry.sizes.mlp, options.dim() * options.mlp_ratio());
    EXPECT_EQ(entry.sizes.patch, options.patch_size()) << entry.name;
    EXPECT_EQ(entry.sizes.least_side, options.patch_size() * options.window())
        << entry.name;
  }
  EXPECT_EQ(swins, models::swin_names().size());
  for (const std::string& size : models::xcit_names()) {
    std::string name = "xcit-" + size;
    std::replace(name.begin(), name.end(), '_', '-');
    const run::ModelEntry* const entry = run::find_model(name);
    ASSERT_NE(entry, nullptr) << name;
    const models::XCiTOptions options = models::xcit_options(size);
    EXPECT_EQ(entry->options, size);
    EXPECT_EQ(entry->sizes.dim, options.block().dim()) << name;
    EXPECT_EQ(entry->sizes.depth, options.depth()) << name;
    EXPECT_EQ(entry->sizes.heads, options.block().attention().heads()) << name;
    EXPECT_EQ(entry->sizes.mlp, options.block().mlp().hidden()) << name;
    EXPECT_EQ(entry->sizes.patch, options.patch_size()) << name;
    EXPECT_EQ(entry->sizes.layer_scale, options.block().layer_scale()) << name;
  }
}

class Distillation : public ::testing::Test {
 protected:
  // A teacher of the images, in folder / "teacher".
  run::RunInfo teach(run::Config config,
                     const std::shared_ptr<const TaskData>& data,
                     const char* name = "teacher") {
    return run_in(name, std::move(config), data);
  }

  run::RunInfo run_in(const char* name, run::Config config,
                      const std::shared_ptr<const TaskData>& data,
                      int steps = 1000) {
    Job job;
    job.config = std::move(config);
    job.data = data;
    job.folder = folder_ / name;
    job.resume = true;
    job.stop = [&] { return steps-- <= 0; };
    return train(job);
  }

  run::Config student(const char* teacher = "teacher") const {
    run::Config config = image_config();
    config.model.name = "vit-distilled";
    config.model.pooling = "class";
    config.train.teacher = (folder_ / teacher).string();
    run::check_config(config);
    return config;
  }

  // Why the student is refused, and that it left nothing.
  std::string refusal(const run::Config& config) {
    const std::string message = message_of<std::runtime_error>(
        [&] { run_in("student", config, image_data()); });
    EXPECT_FALSE(fs::exists(folder_ / "student")) << message;
    const std::string start =
        "[train] train.teacher " + config.train.teacher + " ";
    EXPECT_EQ(message.find(start), 0U) << message;
    return message.substr(std::min(start.size(), message.size()));
  }

  void change_info(const std::function<void(run::RunInfo&)>& change) {
    run::RunInfo info = run::read_run_info(folder_ / "teacher");
    change(info);
    run::write_run_info(folder_ / "teacher", info);
  }

  polyattn::test::TemporaryFolder folder_;
};

run::Config good_teacher() {
  run::Config config = image_config();
  config.train.steps = 150;
  config.train.lr = 5e-3;
  config.train.ema = 0.9;
  config.record.norms = 0;
  config.record.evaluate = 150;
  return config;
}

// What the training images show, with labels that have nothing to do with it.
std::shared_ptr<const TaskData> wrong_labels() {
  auto splits = std::get<data::ImageSplits>(*image_data(512));
  Random random(7, Stream::kOrder, 0);
  for (auto& label : splits.train.labels) {
    label = static_cast<std::int32_t>(random.below(4));
  }
  return std::make_shared<const TaskData>(std::move(splits));
}

// The labels teach nothing here: only a teacher can.
TEST_F(Distillation, AStudentLearnsWhatItsTeacherKnows) {
  const auto taught = teach(good_teacher(), image_data(512));
  ASSERT_GT(taught.result->accuracy, 0.95);
  for (const char* kind : {"hard", "soft"}) {
    SCOPED_TRACE(kind);
    run::Config config = student();
    config.train.distillation = kind;
    config.train.distillation_alpha = 1;
    config.train.steps = 150;
    config.train.lr = 5e-3;
    config.record.evaluate = 150;
    const auto info = run_in(kind, config, wrong_labels());
    EXPECT_EQ(info.state, run::RunState::kFinished);
    EXPECT_GT(info.result->accuracy, 0.9);
    const auto records = timeless(folder_ / kind);
    std::vector<double> losses;
    for (const auto& record : records) {
      if (record.at("kind") == "train") {
        losses.push_back(base::number_of(record.at("loss")));
      }
    }
    EXPECT_LT(losses.back(), 0.5 * losses.front());
  }
}

TEST_F(Distillation, IsRecorded) {
  const auto taught = teach(good_teacher(), image_data());
  run_in("student", student(), image_data());
  const auto info = run::read_run_info(folder_ / "student");
  ASSERT_TRUE(info.teacher);
  EXPECT_EQ(info.teacher->run, (folder_ / "teacher").string());
  EXPECT_EQ(info.teacher->model, "vit");
  EXPECT_EQ(info.teacher->activation, "softmax");
  EXPECT_EQ(info.teacher->accuracy, taught.result->accuracy);
  EXPECT_EQ(info.model, "vit-distilled");
  EXPECT_EQ(info.images, (run::ImageShape{1, 8, 4}));
  EXPECT_EQ(info.tokens, 18);
  EXPECT_FALSE(run::read_run_info(folder_ / "teacher").teacher);
}

// Everything that a step has, with a teacher that is not the plain one.
TEST_F(Distillation, AnInterruptedStudentGivesTheSameBits) {
  run::Config teacher = image_config();
  teacher.model.activation = "x^3/sqrt(N)";
  teach(teacher, image_data(256));
  for (const char* kind : {"hard", "soft"}) {
    SCOPED_TRACE(kind);
    run::Config config = student();
    config.train.distillation = kind;
    config.model.dropout = 0.1;
    config.model.drop_path = 0.2;
    config.train.ema = 0.9;
    config.train.accumulate = 2;
    config.augment.flip = true;
    config.augment.mixup = 0.3;
    const std::string whole = std::string(kind) + "-whole";
    const std::string parts = std::string(kind) + "-parts";
    run_in(whole.c_str(), config, image_data(512));
    int sessions = 0;
    while (run_in(parts.c_str(), config, image_data(512), 1 + sessions % 3)
               .state != run::RunState::kFinished) {
      ASSERT_LT(++sessions, 100);
    }
    EXPECT_GE(sessions, 3);
    EXPECT_EQ(timeless(folder_ / whole), timeless(folder_ / parts));
    EXPECT_NE(timeless(folder_ / whole), timeless(folder_ / "teacher"));
  }
}

// Whole and in parts, with the matched start and the norms of every stage.
TEST_F(Distillation, SwinTrainsAndTeaches) {
  run::Config config = run::default_config("fashion-mnist", "swin-tiny32");
  config.model.activation = "x^3/sqrt(N)";
  config.model.drop_path = 0.1;
  config.train = image_config().train;
  config.record = image_config().record;
  config.train.steps = 6;
  EXPECT_EQ(run_in("whole", config, image_data(64)).state,
            run::RunState::kFinished);
  int sessions = 0;
  while (run_in("parts", config, image_data(64), 2).state !=
         run::RunState::kFinished) {
    ASSERT_LT(++sessions, 100);
  }
  EXPECT_EQ(timeless(folder_ / "whole"), timeless(folder_ / "parts"));
  EXPECT_EQ(timeless(folder_ / "whole").front().at("kind"), "start");
  EXPECT_EQ(run::read_run_info(folder_ / "whole").tokens, 16);
  run::Config next = student("whole");
  next.train.steps = 2;
  EXPECT_EQ(run_in("next", next, image_data(64)).state,
            run::RunState::kFinished);
}

// Of one head, with BatchNorm, and attention over channels.
TEST_F(Distillation, XCiTIsAStudentToo) {
  teach(image_config(), image_data(256));
  run::Config config = run::default_config("fashion-mnist", "xcit-tiny28");
  config.model.activation = "x^3/sqrt(N)";
  config.model.drop_path = 0.1;
  config.train = image_config().train;
  config.record = image_config().record;
  config.train.steps = 6;
  config.train.ema = 0.9;
  config.train.teacher = (folder_ / "teacher").string();
  run::check_config(config);
  EXPECT_EQ(run_in("whole", config, image_data(64)).state,
            run::RunState::kFinished);
  int sessions = 0;
  while (run_in("parts", config, image_data(64), 2).state !=
         run::RunState::kFinished) {
    ASSERT_LT(++sessions, 100);
  }
  EXPECT_EQ(timeless(folder_ / "whole"), timeless(folder_ / "parts"));
  const auto info = run::read_run_info(folder_ / "whole");
  EXPECT_EQ(info.model, "xcit-tiny28");
  // Each layer has an N: 24 channels of a head; four patches and the token.
  EXPECT_EQ(info.tokens, 0);
  for (const auto& record : timeless(folder_ / "whole")) {
    if (record.at("kind") != "norms") continue;
    EXPECT_EQ(record.at("layer_tokens"), (base::Json{24, 24, 24, 24, 5, 5}));
  }
  // Maps of channels and of the class token.
  EXPECT_TRUE(fs::exists(folder_ / "whole" / "maps.json"));
  // It teaches as well.
  run::Config next = student("whole");
  next.train.steps = 2;
  EXPECT_EQ(run_in("next", next, image_data(64)).state,
            run::RunState::kFinished);
}

TEST_F(Distillation, GoesOnWithTheTeacherItBeganWithAlone) {
  teach(image_config(), image_data());
  EXPECT_EQ(run_in("student", student(), image_data(), 5).step, 5);
  fs::remove_all(folder_ / "teacher");
  run::Config other = image_config();
  other.train.seed = 2;
  teach(other, image_data());
  const std::string message = message_of<run::RecordError>(
      [&] { run_in("student", student(), image_data()); });
  EXPECT_EQ(message.find("[train] " + (folder_ / "student").string() +
                         " began with a teacher of other weights (hash "),
            0U)
      << message;
  fs::remove_all(folder_ / "teacher");
  teach(image_config(), image_data());
  EXPECT_EQ(run_in("student", student(), image_data()).state,
            run::RunState::kFinished);
}

// The teacher saw darker images: its mean and deviation are others.
TEST_F(Distillation, ATeacherSeesImagesAsItWasTrainedOnThem) {
  auto dark = std::get<data::ImageSplits>(*image_data());
  for (auto& level : dark.train.pixels) level /= 3;
  teach(image_config(), std::make_shared<const TaskData>(dark));
  const auto pixels = run::read_run_info(folder_ / "teacher").pixels;
  const auto data = image_data();
  const TaskShape shape = shape_of(*data, image_config().task);
  const auto examples = make_examples(data, student());
  ASSERT_NE(examples->pixels(), pixels);
  const Teacher teacher(student(), shape, *examples->pixels());
  const Teacher same(student(), shape, *pixels);
  Batch batch = examples->test_batch(0);
  const torch::Tensor found = teacher.logits(batch);
  EXPECT_FALSE(found.requires_grad());
  // The pixels themselves, from 0 to 1, and then as the teacher has them.
  const torch::Tensor plain =
      batch.inputs * examples->pixels()->std[0] + examples->pixels()->mean[0];
  batch.inputs = (plain - pixels->mean[0]) / pixels->std[0];
  const torch::Tensor expected = same.logits(batch);
  EXPECT_LT((found - expected).abs().max().item<double>(),
            1e-5 * expected.abs().max().item<double>());
  // The same weights, averaged or not, and the same mode, as load_run() has.
  const LoadedRun loaded = load_run(
      folder_ / "teacher", run::read_run_config(folder_ / "teacher"), shape,
      /*best=*/false);
  EXPECT_TRUE(loaded.network->logits(batch).equal(expected));
}

TEST_F(Distillation, RefusesWhatIsNoTeacher) {
  EXPECT_EQ(refusal(student("nowhere")).find("is not the folder of a run: "),
            0U);
  run_in("teacher", image_config(), image_data(), 5);
  EXPECT_EQ(refusal(student()),
            "has not finished: it is interrupted, at step 5 of 12; its weights "
            "may still change");
  teach(image_config(), image_data());
  run::Config other = student();
  other.task.name = "mnist";
  EXPECT_EQ(refusal(other), "is of the task fashion-mnist, not mnist");
  change_info([](run::RunInfo& info) { info.images->size = 28; });
  EXPECT_EQ(refusal(student()),
            "is of images of 1 x 28 x 28 pixels in 4 classes, not 1 x 8 x 8 "
            "pixels in 4 classes");
  change_info([](run::RunInfo& info) { info.images = {1, 8, 10}; });
  EXPECT_EQ(refusal(student()),
            "is of images of 1 x 8 x 8 pixels in 10 classes, not 1 x 8 x 8 "
            "pixels in 4 classes");
  change_info([](run::RunInfo& info) {
    info.images = {1, 8, 4};
    info.pixels.reset();
  });
  EXPECT_EQ(refusal(student()),
            "does not say by which its images were normalised: it is of an "
            "older version, train it again");
}

// Runs of before do not say what their images are like: their weights do.
TEST_F(Distillation, RefusesATeacherWhoseWeightsDoNotFit) {
  auto splits = std::get<data::ImageSplits>(*image_data());
  splits.class_names.emplace_back("e");
  teach(image_config(), std::make_shared<const TaskData>(splits));
  change_info([](run::RunInfo& info) { info.images.reset(); });
  std::string message = refusal(student());
  EXPECT_EQ(message.find("cannot be used for images of 1 x 8 x 8 pixels in 4 "
                         "classes: "),
            0U)
      << message;
  EXPECT_NE(message.find("head.weight is [5, 16], not [4, 16]"),
            std::string::npos)
      << message;
  fs::remove_all(folder_ / "teacher" / "checkpoints");
  message = refusal(student());
  EXPECT_NE(message.find("has no checkpoint that can be used"),
            std::string::npos)
      << message;
}

TEST_F(Distillation, ATrialHasTheTeacherToo) {
  EXPECT_THROW(measure_times(student("nowhere"), image_data(), 0),
               run::RecordError);
  teach(image_config(), image_data());
  EXPECT_GT(measure_times(student(), image_data(), 0).step, 0);
}

}  // namespace polyattn::train::teacher_test
