#include "base/child_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

#include "base/process.h"

namespace polyattn::base {
namespace {

int run_work(const std::function<void(ChildProcess::Out&)>& work, int file) {
  ChildProcess::Out out(file);
  try {
    work(out);
    return 0;
  } catch (const std::bad_alloc&) {
    out.send({{"error", "out of memory"}});
  } catch (const std::exception& error) {
    out.send({{"error", error.what()}});
  }
  return 1;
}

}  // namespace

// A parent that does not listen any more is no reason to fail.
void ChildProcess::Out::send(const Json& message) {
  write_all(
      file_,
      message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

ChildProcess::ChildProcess(const std::function<void(Out&)>& work) {
  Pipe pipe;
  std::fflush(nullptr);  // or the child would write it too
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (pid_ > 0) {
    in_ = std::move(pipe.out);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it died before it could be watched
  std::signal(SIGPIPE, SIG_IGN);
  ::_exit(run_work(work, pipe.in.get()));
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  wait();
}

std::vector<Json> ChildProcess::receive() {
  std::array<char, 65536> bytes{};
  const ssize_t count = ::read(in_.get(), bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return {};
  if (count <= 0) {
    ended_ = true;
    return {};
  }
  buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  std::vector<Json> messages;
  std::size_t first = 0;
  for (std::size_t end = buffer_.find('\n'); end != std::string::npos;
       end = buffer_.find('\n', first)) {
    messages.push_back(Json::parse(buffer_.substr(first, end - first)));
    first = end + 1;
  }
  buffer_.erase(0, first);
  return messages;
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

int ChildProcess::wait() { return wait_for(std::exchange(pid_, -1)); }

}  // namespace polyattn::base
