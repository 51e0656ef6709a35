#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace polyattn::base {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const Variable& variable) {
  const std::string prefix = variable.name + "=";
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(prefix)) {
      result.emplace_back(*entry);
    }
  }
  result.push_back(prefix + variable.value);
  return result;
}

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe");
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(std::size_t i) {
    if (ends[i] >= 0) ::close(ends[i]);
    ends[i] = -1;
  }

  std::array<int, 2> ends{-1, -1};
};

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// An error text, or empty if the child ended well.
std::string wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::strerror(errno);
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("ended by signal {}", WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : fmt::format("exit code {}", code);
}

}  // namespace

std::string output_of_self(const std::vector<std::string>& arguments,
                           const Variable& variable) {
  std::vector<std::string> argv{"polyattn"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_with(variable);
  Pipe pipe;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe.ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                    pointers(argv).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::runtime_error(
        fmt::format("cannot run polyattn again: {}", std::strerror(error)));
  }
  pipe.close_end(1);
  std::string text = read_all(pipe.ends[0]);
  if (const std::string end = wait_for(child); !end.empty()) {
    throw std::runtime_error(fmt::format("polyattn with {}={}: {}",
                                         variable.name, variable.value, end));
  }
  return text;
}

}  // namespace polyattn::base
