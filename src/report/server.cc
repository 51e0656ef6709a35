#include "report/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace polyattn::report {
namespace {

constexpr std::chrono::milliseconds kAskEvery{200};
constexpr std::chrono::milliseconds kDoorClosed{200};

[[noreturn]] void refuse_port(int port, int error) {
  std::string why = std::strerror(error);
  if (error == EADDRINUSE) {
    why = "another program has it; choose one with --port, or --port 0 for any";
  } else if (error == EACCES) {
    why += "; ports from 1024 on are open to everybody";
  }
  throw std::runtime_error(
      fmt::format("cannot listen on 127.0.0.1:{}: {}", port, why));
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_beat_(Clock::now() + options_.heartbeat) {
  if (!waker_.is_open()) refuse_port(options_.port, errno);
  listen_on(options_.port);
}

void Server::listen_on(int port) {
  listener_ = base::FileDescriptor(
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.is_open()) refuse_port(port, errno);
  // So that it can be started again at once. It does not let two programs have
  // the port, as SO_REUSEPORT would.
  const int yes = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (::bind(listener_.get(), generic, size) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0) {
    refuse_port(port, errno);
  }
  port_ = ntohs(address.sin_port);
}

void Server::wake() {
  const std::uint64_t one = 1;
  // Fails only if it is awake already.
  [[maybe_unused]] const ssize_t done =
      ::write(waker_.get(), &one, sizeof(one));
}

void Server::stop() {
  stop_ = true;
  wake();
}

void Server::publish(std::string_view event, std::string_view data) {
  {
    const std::lock_guard lock(mutex_);
    published_ += fmt::format("event: {}\ndata: {}\n\n", event, data);
  }
  wake();
}

void Server::run(const std::function<bool()>& stopped) {
  while (!stop_ && !(stopped && stopped())) {
    serve_once(static_cast<bool>(stopped));
  }
  connections_.clear();
  // Also who has not been let in yet is told so.
  listener_ = base::FileDescriptor();
}

// The waker, the listener while the door is open, the connections.
std::vector<pollfd> Server::watched() const {
  std::vector<pollfd> all = {{waker_.get(), POLLIN, 0},
                             {listener_.get(), POLLIN, 0}};
  if (Clock::now() < closed_until_) all[1].fd = -1;
  for (const Connection& connection : connections_) {
    pollfd& entry = all.emplace_back(pollfd{connection.socket(), 0, 0});
    if (connection.wants_to_read()) entry.events |= POLLIN;
    if (connection.wants_to_write()) entry.events |= POLLOUT;
  }
  return all;
}

int Server::wait_time(bool asked) const {
  const auto now = Clock::now();
  auto until = next_beat_;
  if (asked) until = std::min(until, now + kAskEvery);
  if (now < closed_until_) until = std::min(until, closed_until_);
  for (const Connection& connection : connections_) {
    until = std::min(until, connection.deadline());
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void Server::serve_once(bool asked) {
  std::vector<pollfd> all = watched();
  if (::poll(all.data(), all.size(), wait_time(asked)) < 0) {
    if (errno == EINTR) return;
    throw std::runtime_error(
        fmt::format("the server cannot go on: {}", std::strerror(errno)));
  }
  std::size_t i = 2;
  for (Connection& connection : connections_) {
    serve(connection, all[i++].revents);
  }
  if (all[0].revents != 0) send_published();
  if (all[1].revents != 0) accept_all();
  if (Clock::now() >= next_beat_) beat();
  connections_.remove_if([](const Connection& connection) {
    return connection.stage() == Connection::Stage::kOver;
  });
}

void Server::serve(Connection& connection, int events) {
  // An error or the end of both sides is met by reading, too.
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && connection.read()) {
    respond(connection);
  }
  if ((events & POLLOUT) != 0 && connection.wants_to_write()) {
    connection.write();
  }
  if (Clock::now() >= connection.deadline() && connection.expire()) {
    respond(connection);
  }
}

void Server::respond(Connection& connection) {
  const ParsedRequest& parsed = connection.parsed();
  Response response{.status = parsed.status};
  if (parsed.status == 0) {
    try {
      response = options_.handler(parsed.request);
    } catch (const std::exception&) {
      response = {.status = 500};
    }
  }
  if (response.events && event_clients() >= options_.max_event_clients) {
    response = {.status = 503};
  }
  connection.respond(response);
  // The time in which a browser tries again.
  connection.send_event("retry: 2000\n\n");
}

std::size_t Server::event_clients() const {
  return static_cast<std::size_t>(std::count_if(
      connections_.begin(), connections_.end(),
      [](const Connection& connection) { return connection.has_events(); }));
}

void Server::accept_all() {
  while (true) {
    base::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr,
                                          SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Still waiting, it would wake us again at once.
      if (errno != EAGAIN) closed_until_ = Clock::now() + kDoorClosed;
      return;
    }
    connections_.emplace_back(std::move(socket), options_.limits);
    if (connections_.size() > options_.max_connections) {
      connections_.back().respond({.status = 503});
      connections_.pop_back();
    }
  }
}

void Server::send_published() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t done =
      ::read(waker_.get(), &count, sizeof(count));
  std::string events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(published_);
  }
  if (events.empty()) return;
  for (Connection& connection : connections_) connection.send_event(events);
}

// Shows the client, and us, whether the other is still there.
void Server::beat() {
  next_beat_ = Clock::now() + options_.heartbeat;
  for (Connection& connection : connections_) connection.send_event(":\n\n");
}

}  // namespace polyattn::report
