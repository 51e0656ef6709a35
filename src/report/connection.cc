#include "report/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace polyattn::report {
namespace {

constexpr std::size_t kReadPiece = 4096;
// Of what is thrown away.
constexpr std::size_t kMaxDiscarded = 1 << 20;
// Some thousand events, or a quarter of an hour's.
constexpr std::size_t kMaxWaiting = 1 << 18;

// The page is one file: its scripts and styles stand in it, its pictures it
// draws itself, and it speaks to nobody but us.
constexpr std::string_view kSafetyHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

std::string head_text(const Response& response, std::size_t length) {
  std::string head =
      fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\n{}",
                  status_text(response.status), response.type, kSafetyHeaders);
  if (response.status == 405) head += "Allow: GET, HEAD\r\n";
  if (response.status == 503) head += "Retry-After: 5\r\n";
  if (!response.events) head += fmt::format("Content-Length: {}\r\n", length);
  return head + "\r\n";
}

}  // namespace

Connection::Connection(base::FileDescriptor socket, const Limits& limits)
    : socket_(std::move(socket)), limits_(limits) {
  set_stage(Stage::kRequest);
}

void Connection::set_stage(Stage stage) {
  stage_ = stage;
  const auto time = stage == Stage::kRequest    ? limits_.request
                    : stage == Stage::kResponse ? limits_.response
                                                : limits_.goodbye;
  // Events wait for whatever happens, not for the client.
  deadline_ =
      stage == Stage::kEvents ? Clock::time_point::max() : Clock::now() + time;
}

bool Connection::wants_to_write() const {
  return stage_ == Stage::kResponse ||
         (stage_ == Stage::kEvents && sent_ < output_.size());
}

bool Connection::read() {
  if (stage_ != Stage::kRequest) {
    discard();
    return false;
  }
  char bytes[kReadPiece];
  const ssize_t got = ::recv(socket(), bytes, sizeof(bytes), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    stage_ = Stage::kOver;
    return false;
  }
  input_.append(bytes, static_cast<std::size_t>(got));
  parsed_ = parse_request(input_);
  if (!parsed_.complete) return false;
  input_.clear();
  return true;
}

void Connection::discard() {
  char bytes[kReadPiece];
  const ssize_t got = ::recv(socket(), bytes, sizeof(bytes), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  discarded_ += static_cast<std::size_t>(got > 0 ? got : 0);
  input_ended_ = got == 0;
  // One that has only ended its own side may still take the response.
  if (input_ended_ && stage_ == Stage::kResponse && !events_) return;
  if (got <= 0 || discarded_ > kMaxDiscarded) stage_ = Stage::kOver;
}

void Connection::respond(const Response& response) {
  body_ = response.body;
  if (!body_) {
    body_ = std::make_shared<const std::string>(status_text(response.status) +
                                                "\n");
  }
  output_ = head_text(response, body_->size());
  const bool head_only = parsed_.request.method == "HEAD";
  if (head_only || response.events) body_.reset();
  events_ = response.events && !head_only;
  sent_ = 0;
  set_stage(Stage::kResponse);
  write();
}

void Connection::send_event(std::string_view text) {
  if (!has_events()) return;
  if (output_.size() - sent_ + text.size() > kMaxWaiting) {
    stage_ = Stage::kOver;
    return;
  }
  output_.erase(0, std::exchange(sent_, 0));
  output_ += text;
  write();
}

void Connection::write() {
  const std::size_t size = output_.size() + (body_ ? body_->size() : 0);
  while (sent_ < size) {
    const bool head = sent_ < output_.size();
    std::string_view rest = head ? output_ : *body_;
    rest.remove_prefix(head ? sent_ : sent_ - output_.size());
    const ssize_t done =
        ::send(socket(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) return;
    if (done < 0) {
      stage_ = Stage::kOver;
      return;
    }
    sent_ += static_cast<std::size_t>(done);
    if (stage_ == Stage::kResponse) set_stage(Stage::kResponse);
  }
  written_all();
}

void Connection::written_all() {
  if (stage_ != Stage::kResponse) return;
  if (events_) {
    set_stage(Stage::kEvents);
    return;
  }
  ::shutdown(socket(), SHUT_WR);
  set_stage(Stage::kGoodbye);
}

bool Connection::expire() {
  if (stage_ == Stage::kRequest && !input_.empty()) {
    parsed_ = {.complete = true, .status = 408, .request = {}};
    return true;
  }
  stage_ = Stage::kOver;
  return false;
}

}  // namespace polyattn::report
