#include "data/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/file_descriptor.h"
#include "base/message.h"
#include "data/file.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

[[noreturn]] void refuse(const Command& command, int error) {
  throw DataError(fmt::format("cannot run {}: {}", command.arguments.front(),
                              std::strerror(error)));
}

// What a program is started with, besides its arguments.
class Actions {
 public:
  Actions() { ::posix_spawn_file_actions_init(&actions_); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  void open(int file, const char* path, int flags) {
    constexpr mode_t kMode = 0666;
    ::posix_spawn_file_actions_addopen(&actions_, file, path, flags, kMode);
  }
  void duplicate(int from, int to) {
    ::posix_spawn_file_actions_adddup2(&actions_, from, to);
  }
  void change_folder(const char* path) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, path);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// A child that is ended, and waited for, when this goes out of scope.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ > 0) stop();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void stop() {
    ::kill(id_, SIGKILL);
    wait();
  }

  // The status as waitpid() gives it.
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
    return status;
  }

 private:
  pid_t id_;
};

// 0 if there is no such program.
pid_t start(const Command& command, int output) {
  Actions actions;
  actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.duplicate(output, STDOUT_FILENO);
  actions.open(STDERR_FILENO, command.log.c_str(),
               O_WRONLY | O_CREAT | O_TRUNC);
  if (!command.folder.empty()) actions.change_folder(command.folder.c_str());
  std::vector<std::string> arguments = command.arguments;
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t id = 0;
  const int error = ::posix_spawnp(&id, pointers[0], actions.get(), nullptr,
                                   pointers.data(), environ);
  if (error == ENOENT || error == EACCES) return 0;
  if (error != 0) refuse(command, error);
  return id;
}

// The last words of the program, in one line fit for a terminal.
std::string last_words(const std::filesystem::path& log) {
  constexpr std::size_t kMaxLines = 3;
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  std::string text;
  try {
    text = read_text(log, kMaxBytes);
  } catch (const DataError&) {
    return "";  // It said nothing, or far too much.
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t begin = text.size();
  for (std::size_t i = 0; i < kMaxLines && begin != std::string::npos; ++i) {
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  }
  if (begin != std::string::npos) text.erase(0, begin + 1);
  return text.empty() ? "" : ": " + base::in_quotes(text);
}

std::string reason_of(int status, const std::filesystem::path& log) {
  if (WIFSIGNALED(status)) {
    return fmt::format("ended by signal {}", WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : fmt::format("exit code {}{}", code, last_words(log));
}

}  // namespace

CommandEnd run_command(
    const Command& command,
    const std::function<bool(std::span<const std::byte>)>& take) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse(command, errno);
  const base::FileDescriptor input(ends[0]);
  base::FileDescriptor output(ends[1]);
  const pid_t id = start(command, output.get());
  if (id == 0) return {.found = false, .reason = "there is no such program"};
  Child child(id);
  output =
      base::FileDescriptor();  // Or the end of the output would never come.
  std::vector<std::byte> buffer(std::size_t{1} << 16);
  while (true) {
    const ssize_t count = ::read(input.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(command, errno);
    if (count == 0) break;
    if (!take(std::span(buffer).first(static_cast<std::size_t>(count)))) {
      child.stop();
      return {.stopped = true, .reason = "it said more than expected"};
    }
  }
  return {.reason = reason_of(child.wait(), command.log)};
}

CommandOutput output_of(const Command& command, std::size_t max_bytes) {
  CommandOutput output;
  output.end = run_command(command, [&](std::span<const std::byte> bytes) {
    if (bytes.size() > max_bytes - output.text.size()) return false;
    output.text.append(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
    return true;
  });
  return output;
}

}  // namespace polyattn::data
