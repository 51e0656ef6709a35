// A client that says exactly what it is told to, and takes what comes back.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace polyattn::report::test {

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    // Only so that a test that fails does not hang.
    const timeval patience{.tv_sec = 120, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                 sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof(address)) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent =
          ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the other end has had enough
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void end_output() const { ::shutdown(socket_.get(), SHUT_WR); }

  // Everything up to the end of the connection.
  std::string rest() {
    while (more()) {
    }
    return received_;
  }

  // Everything up to and with this text, or to the end.
  std::string until(std::string_view text) {
    while (received_.find(text) == std::string::npos && more()) {
    }
    return received_;
  }

  // What is received from now on, alone.
  void forget() { received_.clear(); }

 private:
  bool more() {
    char bytes[65536];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  base::FileDescriptor socket_;
  std::string received_;
};

inline std::string get_text(std::string_view path,
                            std::string_view headers = "Host: localhost\r\n") {
  return std::string("GET ") + std::string(path) + " HTTP/1.1\r\n" +
         std::string(headers) + "\r\n";
}

// A whole exchange.
inline std::string exchange(int port, std::string_view request) {
  Client client(port);
  client.send(request);
  return client.rest();
}

inline std::string status_of(const std::string& response) {
  return response.substr(0, response.find("\r\n"));
}

inline std::string body_of(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

}  // namespace polyattn::report::test
