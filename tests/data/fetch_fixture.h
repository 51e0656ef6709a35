// Fetching with programs that stand in for npm and curl.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "data/fake_tools.h"
#include "data/fetch.h"
#include "data/support.h"

namespace polyattn::data::test {

// Remembers what it is told.
class Recorder : public FetchWatcher {
 public:
  void step(const std::string& what) override { steps += what + "\n"; }
  void received(std::uint64_t bytes, std::uint64_t of) override {
    most = std::max(most, bytes);
    total = of;
  }

  std::string steps;
  std::uint64_t most = 0;
  std::uint64_t total = 0;
};

class FetchTest : public testing::Test {
 protected:
  void SetUp() override {
    tools_.serve(toy_.archive());
    tools_.add_npm();
    tools_.add_curl();
  }

  FetchResult run(const FetchOptions& options = {}) {
    return fetch(toy_.entry(), options, recorder_);
  }
  std::string refusal(const FetchOptions& options = {}) {
    return error_of([&] { run(options); });
  }
  std::string half() const {
    return toy_.archive().substr(0, toy_.archive().size() / 2);
  }
  std::string curl_call(std::size_t offset) const {
    return "curl " + std::to_string(offset) + " https://registry.invalid/";
  }
  bool anything_kept() const {
    return std::filesystem::exists(set_) ||
           std::filesystem::exists(cache_ / ".staging/toy");
  }

  FakeTools tools_;
  ToySet toy_;
  TemporaryFolder cache_;
  TestVariable data_{"POLYATTN_DATA", cache_.path().string()};
  std::filesystem::path set_ = cache_ / "toy";
  static constexpr const char* kPart = ".staging/toy/downloads/archive.part";
  Recorder recorder_;
};

}  // namespace polyattn::data::test
