// A server for one's own machine: 127.0.0.1 alone, one thread, requests without
// a body, and streams of events.
//
// One loop over poll() holds every connection, so that a client that sends
// slowly, reads slowly or never leaves keeps nobody else waiting, and
// stopping waits for nobody.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "report/connection.h"
#include "report/http.h"

struct pollfd;

namespace polyattn::report {

struct ServerOptions {
  int port = 0;  // 0: any that is free
  // Gets every request that is well-formed; called by the thread in run().
  std::function<Response(const Request&)> handler;
  std::size_t max_connections = 64;
  std::size_t max_event_clients = 16;  // more get 503
  std::chrono::milliseconds heartbeat{10'000};
  Connection::Limits limits;
};

class Server {
 public:
  // Listens. Throws std::runtime_error, which names the port, if it cannot.
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }

  // Serves until stop() is called, or `stopped`, which is asked several times a
  // second, says so. Connections are then closed, whatever they are at, and so
  // is the port: it is called once.
  void run(const std::function<bool()>& stopped = {});

  // Both from any thread.
  void stop();
  // To all that listen to events. `data` without line ends.
  void publish(std::string_view event, std::string_view data);

 private:
  using Clock = Connection::Clock;

  void listen_on(int port);
  void wake();
  std::vector<struct pollfd> watched() const;
  int wait_time(bool asked) const;
  void serve_once(bool asked);
  void accept_all();
  void serve(Connection& connection, int events);
  void respond(Connection& connection);
  void send_published();
  void beat();
  std::size_t event_clients() const;

  ServerOptions options_;
  base::FileDescriptor listener_;
  base::FileDescriptor waker_;
  int port_ = 0;
  std::list<Connection> connections_;
  Clock::time_point next_beat_;
  // Out of file descriptors: nobody is let in until then.
  Clock::time_point closed_until_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::string published_;  // guarded by mutex_
};

}  // namespace polyattn::report
