#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/message.h"
#include "base/text_file.h"

namespace polyattn::base {
namespace {

[[noreturn]] void refuse(const Command& command, int error) {
  throw std::runtime_error(fmt::format(
      "cannot run {}: {}", command.arguments.front(), std::strerror(error)));
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

  int wait() { return wait_for(std::exchange(id_, 0)); }

 private:
  pid_t id_;
};

// For functions of C, which do not write there.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(
    const std::vector<Variable>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced = std::any_of(
        variables.begin(), variables.end(), [&](const Variable& variable) {
          return std::string_view(*entry).starts_with(variable.name + "=");
        });
    if (!replaced) result.emplace_back(*entry);
  }
  for (const Variable& variable : variables) {
    result.push_back(variable.name + "=" + variable.value);
  }
  return result;
}

// 0 if there is no such program.
pid_t start(const Command& command, int output) {
  Actions actions;
  actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.duplicate(output, STDOUT_FILENO);
  if (!command.log.empty()) {
    actions.open(STDERR_FILENO, command.log.c_str(),
                 O_WRONLY | O_CREAT | O_TRUNC);
  }
  if (!command.folder.empty()) actions.change_folder(command.folder.c_str());
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.variables);
  const auto spawn = command.program.empty() ? &::posix_spawnp : &::posix_spawn;
  const char* const program = command.program.empty()
                                  ? arguments.front().c_str()
                                  : command.program.c_str();
  pid_t id = 0;
  const int error =
      spawn(&id, program, actions.get(), nullptr, pointers(arguments).data(),
            pointers(environment).data());
  if (error == ENOENT || error == EACCES) return 0;
  if (error != 0) refuse(command, error);
  return id;
}

// The last words of the program, in one line fit for a terminal.
std::string last_words(const std::filesystem::path& log) {
  constexpr std::size_t kMaxLines = 3;
  constexpr std::size_t kMaxBytes = 1 << 20;
  if (log.empty()) return "";
  std::string text;
  try {
    text = read_text_file(log, kMaxBytes);
  } catch (const std::runtime_error&) {
    return "";  // It said nothing, or far too much.
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t begin = text.size();
  for (std::size_t i = 0; i < kMaxLines && begin != std::string::npos; ++i) {
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  }
  if (begin != std::string::npos) text.erase(0, begin + 1);
  return text.empty() ? "" : ": " + in_quotes(text);
}

}  // namespace

Pipe::Pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  out = FileDescriptor(ends[0]);
  in = FileDescriptor(ends[1]);
}

ssize_t read_some(int file, void* to, std::size_t size) {
  ssize_t count = 0;
  do {
    count = ::read(file, to, size);
  } while (count < 0 && errno == EINTR);
  return count;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string describe_end(int code) {
  return code < 0 ? fmt::format("signal {}", -code)
                  : fmt::format("exit code {}", code);
}

CommandEnd run_command(
    const Command& command,
    const std::function<bool(std::span<const std::byte>)>& take) {
  Pipe pipe;
  const pid_t id = start(command, pipe.in.get());
  if (id == 0) return {.found = false, .reason = "there is no such program"};
  Child child(id);
  pipe.in = FileDescriptor();  // Or the end of the output would never come.
  std::vector<std::byte> buffer(std::size_t{1} << 16);
  while (true) {
    const ssize_t count =
        read_some(pipe.out.get(), buffer.data(), buffer.size());
    if (count < 0) refuse(command, errno);
    if (count == 0) break;
    if (!take(std::span(buffer).first(static_cast<std::size_t>(count)))) {
      child.stop();
      return {.stopped = true, .reason = "it said more than expected"};
    }
  }
  const int code = child.wait();
  if (code == 0) return {};
  return {.reason = describe_end(code) + last_words(command.log)};
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

std::string output_of_self(const std::vector<std::string>& arguments,
                           const Variable& variable) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  Command command{.arguments = {"polyattn"},
                  .program = "/proc/self/exe",
                  .variables = {variable}};
  command.arguments.insert(command.arguments.end(), arguments.begin(),
                           arguments.end());
  CommandOutput output = output_of(command, kMaxBytes);
  if (!output.end.ended_well()) {
    throw std::runtime_error(fmt::format("polyattn with {}={}: {}",
                                         variable.name, variable.value,
                                         output.end.reason));
  }
  return std::move(output.text);
}

}  // namespace polyattn::base
