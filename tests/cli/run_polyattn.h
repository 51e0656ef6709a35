// The command itself, run by a shell.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "support/message_of.h"

namespace polyattn::cli {

struct Ended {
  int exit_code = -1;
  std::string text;
};

// Standard output, and standard error where `arguments` redirects it.
inline Ended run_polyattn(const std::string& arguments,
                          const std::string& environment = "") {
  const std::string line =
      environment + " '" + POLYATTN_BINARY + "' " + arguments;
  Ended ended;
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    ended.text.append(buffer, n);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  return ended;
}

inline bool contains(const Ended& ended, const std::string& text) {
  return test::contains(ended.text, text);
}

}  // namespace polyattn::cli
