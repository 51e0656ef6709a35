#include "base/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "base/process.h"

namespace polyattn::base {
namespace child_process_test {

std::vector<Json> all_messages(ChildProcess& child) {
  std::vector<Json> all;
  while (!child.ended()) {
    const auto some = child.receive();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(ChildProcess, TellsInOrder) {
  ChildProcess child([](ChildProcess::Out& out) {
    for (int i = 0; i < 20000; ++i) out.send({{"n", i}});
  });
  const auto messages = all_messages(child);
  EXPECT_EQ(child.wait(), 0);
  ASSERT_EQ(messages.size(), 20000U);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(messages[static_cast<std::size_t>(i)].at("n"), i);
  }
}

TEST(ChildProcess, WhatItThrowsIsAMessage) {
  ChildProcess child(
      [](ChildProcess::Out&) -> void { throw std::runtime_error("no luck"); });
  const auto messages = all_messages(child);
  EXPECT_EQ(child.wait(), 1);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].at("error"), "no luck");
}

TEST(ChildProcess, ASignalEndsIt) {
  ChildProcess child([](ChildProcess::Out& out) {
    out.send({{"ready", true}});
    for (;;) ::pause();
  });
  ASSERT_EQ(child.receive().size(), 1U);
  child.signal(SIGKILL);
  EXPECT_TRUE(all_messages(child).empty());
  const int code = child.wait();
  EXPECT_EQ(code, -SIGKILL);
  EXPECT_EQ(describe_end(code), "signal 9");
}

}  // namespace child_process_test
}  // namespace polyattn::base
