// Small data to train on, and the command itself in a process of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace polyattn::cli {

namespace fs = std::filesystem;

// A folder with four idx files of 8 x 8 pixels: the label is the brightest
// quarter.
inline void write_idx(const fs::path& folder) {
  fs::create_directories(folder);
  std::mt19937 random(1);  // its numbers are the same everywhere
  const auto big = [](std::ofstream& file, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      file.put(static_cast<char>(value >> shift));
    }
  };
  for (const auto& [name, count] :
       {std::pair{"train", 256U}, std::pair{"t10k", 64U}}) {
    std::ofstream images(folder / (std::string(name) + "-images-idx3-ubyte"),
                         std::ios::binary);
    std::ofstream labels(folder / (std::string(name) + "-labels-idx1-ubyte"),
                         std::ios::binary);
    for (const std::uint32_t value : {0x803U, count, 8U, 8U})
      big(images, value);
    for (const std::uint32_t value : {0x801U, count}) big(labels, value);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t label = random() % 4;
      labels.put(static_cast<char>(label));
      for (std::uint32_t p = 0; p < 64; ++p) {
        const bool bright = label == 2 * (p / 32) + (p % 8) / 4;
        images.put(static_cast<char>(random() % 120 + (bright ? 100 : 0)));
      }
    }
  }
}

class Training : public testing::Test {
 protected:
  void SetUp() override { write_idx(folder_ / "data"); }

  // Options of a model so small that a step takes a few milliseconds.
  std::vector<std::string> small(std::vector<std::string> arguments) const {
    for (const char* setting :
         {"model.dim=16", "model.heads=2", "model.depth=2", "model.mlp=32",
          "model.patch=2", "train.batch=16", "train.steps=150",
          "record.checkpoint=10", "record.evaluate=50", "record.every=5"}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(),
                     {"--threads", "2", "--set",
                      "task.path=" + (folder_ / "data").string()});
    return arguments;
  }

  pid_t start(const std::vector<std::string>& arguments) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const std::string log = (folder_ / "log").string();
    const int out = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (::chdir(folder_.path().c_str()) != 0) ::_exit(126);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
    std::vector<char*> words{const_cast<char*>(POLYATTN_BINARY)};
    for (const std::string& word : arguments) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    ::execv(POLYATTN_BINARY, words.data());
    ::_exit(127);
  }

  // The exit code, or minus the signal that ended it.
  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(const std::vector<std::string>& arguments) const {
    return wait_for(start(arguments));
  }

  // What the last command printed.
  std::string log() const { return test::read_text(folder_ / "log"); }

  // Returns when the file has this many bytes, or the child is gone.
  static void wait_for_bytes(const fs::path& file, std::uintmax_t bytes,
                             pid_t child) {
    std::error_code none;
    while (!fs::exists(file) || fs::file_size(file, none) < bytes) {
      siginfo_t ended{};
      const int code = ::waitid(P_PID, static_cast<id_t>(child), &ended,
                                WEXITED | WNOHANG | WNOWAIT);
      if (code != 0 || ended.si_pid == child) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  test::TemporaryFolder folder_;
};

}  // namespace polyattn::cli
