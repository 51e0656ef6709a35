#include "train/run_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>

#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::run_folder_test {

using testing::image_config;
using testing::TemporaryFolder;

// Takes a folder on a file system whose locks say this; what it warned of.
std::string warning_of(int error) {
  const TemporaryFolder folder;
  std::string warning;
  const RunFolder taken(folder / "run", image_config(),
                        {.warn = [&](const auto& text) { warning = text; },
                         .lock = [&](int) { return error; }});
  return warning;
}

TEST(RunFolder, IsTakenByOneAtATime) {
  const TemporaryFolder folder;
  const RunFolder taken(folder / "run", image_config(), {});
  EXPECT_THROW(RunFolder(folder / "run", image_config(), {.resume = true}),
               run::RecordError);
}

TEST(RunFolder, WithoutLocksItWarnsAndGoesOn) {
  EXPECT_EQ(warning_of(0), "");
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    EXPECT_NE(warning_of(error).find("has no locks"), std::string::npos);
  }
  EXPECT_THROW(warning_of(EWOULDBLOCK), run::RecordError);
  EXPECT_THROW(warning_of(EIO), std::system_error);
}

TEST(RunFolder, ARefusedRunLeavesNothingThatBlocks) {
  const TemporaryFolder folder;
  Job job;
  job.config = image_config();
  job.config.model.patch = 3;  // of images of 8 x 8
  job.data = testing::image_data();
  job.folder = folder / "run";
  EXPECT_ANY_THROW(train(job));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/config.toml"));
  job.config.model.patch = 2;
  EXPECT_EQ(train(job).state, run::RunState::kFinished);
}

TEST(RunFolder, ARunThatFailsInItsFirstStepLeavesNothingThatBlocks) {
  const TemporaryFolder folder;
  Job job;
  job.config = image_config();
  job.data = testing::image_data();
  job.folder = folder / "run";
  job.stop = []() -> bool { throw std::runtime_error("before a step"); };
  EXPECT_THROW(train(job), std::runtime_error);
  job.stop = [] { return false; };
  job.config.train.lr = 0.123;
  job.resume = true;
  EXPECT_EQ(train(job).state, run::RunState::kFinished);
}

}  // namespace polyattn::train::run_folder_test
