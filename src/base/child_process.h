// A copy of this process that does one thing and tells about it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/json_text.h"

namespace polyattn::base {

class ChildProcess {
 public:
  // How the child tells: a JSON object a line.
  class Out {
   public:
    explicit Out(int file) : file_(file) {}
    void send(const Json& message);

   private:
    int file_;
  };

  // Splits off a child that runs `work` and ends with code 0. What it throws
  // becomes a message {"error": text}, and code 1. The child gets SIGTERM if
  // this process dies. No other thread of this process may be running.
  explicit ChildProcess(const std::function<void(Out&)>& work);
  // Ends the child if it is still there.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Readable when there is something to receive, or at the end.
  int file() const { return in_.get(); }

  // The messages that are there; waits for some if there are none.
  std::vector<Json> receive();

  // It has closed its end: nothing more will come.
  bool ended() const { return ended_; }

  void signal(int number) const;

  // Waits for its end. The exit code, or minus the signal (describe_end()).
  int wait();

 private:
  pid_t pid_ = -1;
  FileDescriptor in_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace polyattn::base
