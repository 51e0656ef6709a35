// One connection of the server: a request comes in, a response goes out, and
// then either the connection ends or events follow until the client leaves.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "report/http.h"

namespace polyattn::report {

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = nullptr;  // the status in words
  bool events = false;  // a stream of events instead of a body
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // For each stage, and for the client to take anything of what it is sent.
  struct Limits {
    std::chrono::milliseconds request{5'000};
    std::chrono::milliseconds response{10'000};
    std::chrono::milliseconds goodbye{1'000};
  };

  enum class Stage {
    kRequest,
    kResponse,
    kEvents,
    // Everything is said; what the client still sends is read and thrown away,
    // for closing at once might take the response from it again.
    kGoodbye,
    kOver
  };

  Connection(base::FileDescriptor socket, const Limits& limits);

  int socket() const { return socket_.get(); }
  Stage stage() const { return stage_; }
  bool has_events() const { return events_ && stage_ != Stage::kOver; }
  bool wants_to_read() const { return !input_ended_; }
  bool wants_to_write() const;
  Clock::time_point deadline() const { return deadline_; }

  // The socket has bytes, or its end. Returns true when a request, or what is
  // no request, is complete: parsed() has it, and respond() is to follow.
  bool read();
  const ParsedRequest& parsed() const { return parsed_; }

  void respond(const Response& response);
  // In the stage of events: text that is sent as it is. A client that does not
  // take what it is sent is left.
  void send_event(std::string_view text);

  // The socket takes bytes.
  void write();

  // The deadline has passed. Returns true if respond() is to follow.
  bool expire();

 private:
  void discard();
  void set_stage(Stage stage);
  void written_all();

  base::FileDescriptor socket_;
  Limits limits_;
  Stage stage_ = Stage::kRequest;
  Clock::time_point deadline_;
  std::string input_;
  bool input_ended_ = false;
  std::size_t discarded_ = 0;
  ParsedRequest parsed_;
  std::string output_;  // what goes before the body, and events
  std::shared_ptr<const std::string> body_;
  std::size_t sent_ = 0;  // of both
  bool events_ = false;
};

}  // namespace polyattn::report
