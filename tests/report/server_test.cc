// The server over real sockets, with clients that behave and clients that do
// not.
#include "report/server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "client.h"
#include "support.h"

namespace polyattn::report {
namespace server_test {

using namespace std::chrono_literals;
using test::body_of;
using test::Client;
using test::exchange;
using test::get_text;
using test::message_of;
using test::status_of;

// More than the system holds for a client that does not read.
constexpr std::size_t kHuge = std::size_t{64} << 20;

Response answer(const Request& request) {
  if (request.path == "/events") {
    return {.type = "text/event-stream", .events = true};
  }
  if (request.path == "/large") {
    return {.body = std::make_shared<const std::string>(10 << 20, 'x')};
  }
  if (request.path == "/huge") {
    return {.body = std::make_shared<const std::string>(kHuge, 'x')};
  }
  if (request.path == "/throw") throw std::runtime_error("no");
  if (request.path != "/") return {.status = 404};
  return {.body = std::make_shared<const std::string>("hello")};
}

// A server that runs until the test ends.
class Running {
 public:
  explicit Running(ServerOptions options = {})
      : server_(with_answer(std::move(options))),
        thread_([this] { server_.run(); }) {}
  ~Running() { stop(); }

  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Server& server() { return server_; }
  int port() const { return server_.port(); }

 private:
  static ServerOptions with_answer(ServerOptions options) {
    options.handler = answer;
    return options;
  }

  Server server_;
  std::thread thread_;
};

TEST(Server, AnswersAndCloses) {
  Running running;
  const std::string response = exchange(running.port(), get_text("/"));
  EXPECT_EQ(status_of(response), "HTTP/1.1 200 OK");
  EXPECT_EQ(body_of(response), "hello");
  for (const char* header :
       {"\r\nContent-Length: 5\r\n", "\r\nConnection: close\r\n",
        "\r\nX-Content-Type-Options: nosniff\r\n",
        "\r\nCache-Control: no-store\r\n",
        "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
        "\r\nContent-Security-Policy: default-src 'none'; "}) {
    EXPECT_NE(response.find(header), std::string::npos) << header << response;
  }
}

TEST(Server, HeadHasNoBody) {
  Running running;
  for (const char* path : {"/", "/events", "/absent"}) {
    std::string request = get_text(path);
    request.replace(0, 3, "HEAD");
    const std::string response = exchange(running.port(), request);
    EXPECT_EQ(body_of(response), "") << path;
    EXPECT_NE(response.find("\r\n\r\n"), std::string::npos);
  }
}

TEST(Server, RefusesAndLivesOn) {
  Running running;
  const struct {
    std::string request;
    const char* status;
  } cases[] = {
      {"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request"},
      {std::string("\x16\x03\x01\0\xA5", 5), "HTTP/1.1 400 Bad Request"},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"},
      {"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
       "HTTP/1.1 505 HTTP Version Not Supported"},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
       "HTTP/1.1 405 Method Not Allowed"},
      {get_text("/", "Host: x\r\nContent-Length: 3\r\n") + "abc",
       "HTTP/1.1 413 Content Too Large"},
      {"GET /" + std::string(100'000, 'a'),
       "HTTP/1.1 431 Request Header Fields Too Large"},
      {get_text("/", "X: " + std::string(100'000, 'a') + "\r\n"),
       "HTTP/1.1 431 Request Header Fields Too Large"},
      {get_text("/absent"), "HTTP/1.1 404 Not Found"},
      {get_text("/throw"), "HTTP/1.1 500 Internal Server Error"},
  };
  for (const auto& [request, status] : cases) {
    EXPECT_EQ(status_of(exchange(running.port(), request)), status)
        << request.substr(0, 60);
  }
  EXPECT_EQ(body_of(exchange(running.port(), get_text("/"))), "hello");
}

// What a lenient server would take for a request, or for another one than a
// proxy or a browser sees in it.
TEST(Server, RefusesWhatCanBeReadInTwoWays) {
  Running running;
  const std::string line = "GET / HTTP/1.1\r\n", host = "Host: localhost\r\n";
  for (const std::string& request :
       {std::string("GET / HTTP/1.1\nHost: localhost\n\n"),
        std::string("GET / HTTP/1.1\rHost: localhost\r\r"),
        line + "Host: localhost\rX: y\r\n\r\n",
        std::string("GET /\0 HTTP/1.1\r\n", 17) + host + "\r\n",
        "GET http://localhost/ HTTP/1.1\r\n" + host + "\r\n",
        line + host + "Host: evil.example\r\n\r\n",
        line + host + " folded\r\n\r\n", line + "Host : localhost\r\n\r\n",
        line + host + "no colon\r\n\r\n"}) {
    EXPECT_EQ(status_of(exchange(running.port(), request)),
              "HTTP/1.1 400 Bad Request")
        << request;
  }
  EXPECT_EQ(body_of(exchange(running.port(), get_text("/"))), "hello");
}

TEST(Server, AnswersOneRequestAConnection) {
  Running running;
  const std::string response =
      exchange(running.port(), get_text("/") + get_text("/absent"));
  EXPECT_EQ(response.find("404"), std::string::npos) << response;
  EXPECT_EQ(body_of(response), "hello");
}

TEST(Server, TakesARequestByteByByte) {
  Running running;
  Client client(running.port());
  for (const char byte : get_text("/")) client.send({&byte, 1});
  EXPECT_EQ(body_of(client.rest()), "hello");
}

TEST(Server, AnswersWhoHasEndedItsOwnSide) {
  Running running;
  Client client(running.port());
  client.send(get_text("/large"));
  client.end_output();
  EXPECT_EQ(body_of(client.rest()).size(), 10U << 20);
}

TEST(Server, SlowClientsKeepNobodyWaiting) {
  Running running;
  Client half(running.port());
  half.send("GET / HT");
  Client lazy(running.port());
  lazy.send(get_text("/large"));  // and does not read
  Client silent(running.port());
  EXPECT_EQ(body_of(exchange(running.port(), get_text("/"))), "hello");
  half.send("TP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(body_of(half.rest()), "hello");
  EXPECT_EQ(body_of(lazy.rest()).size(), 10U << 20);
}

TEST(Server, WhoNeverEndsItsRequestIsLeft) {
  ServerOptions options;
  options.limits.request = 1ms;
  Running running(std::move(options));
  Client half(running.port());
  half.send("GET / HT");
  // Or nothing, if the time was over before the first byte was there.
  const std::string response = half.rest();
  EXPECT_TRUE(response.empty() ||
              status_of(response) == "HTTP/1.1 408 Request Timeout")
      << response;
  Client silent(running.port());
  EXPECT_EQ(silent.rest(), "");
}

// Or a byte now and then would hold a connection without end.
TEST(Connection, BytesDoNotProlongTheTimeForARequest) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const base::FileDescriptor client(ends[0]);
  Connection connection(base::FileDescriptor(ends[1]), {});
  const auto deadline = connection.deadline();
  for (const char byte : std::string_view("GET / HTTP/1.1\r\nX: y")) {
    ASSERT_EQ(::send(client.get(), &byte, 1, 0), 1);
    EXPECT_FALSE(connection.read());
    EXPECT_EQ(connection.deadline(), deadline);
  }
  EXPECT_TRUE(connection.expire());
  EXPECT_EQ(connection.parsed().status, 408);
}

TEST(Server, ManySilentClientsAreLeft) {
  ServerOptions options;
  options.limits.request = 1ms;
  Running running(std::move(options));
  std::list<Client> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(running.port());
  for (Client& client : clients) {
    const std::string response = client.rest();
    EXPECT_TRUE(response.empty() ||
                status_of(response) == "HTTP/1.1 503 Service Unavailable")
        << response;
  }
}

TEST(Server, WhoDoesNotReadIsLeft) {
  ServerOptions options;
  options.limits.response = 1ms;
  options.max_connections = 1;
  Running running(std::move(options));
  Client lazy(running.port());
  lazy.send(get_text("/huge"));
  lazy.until("\r\n\r\n");
  // Only when it is left there is room for another.
  std::string response;
  do {
    response = exchange(running.port(), get_text("/"));
  } while (status_of(response) != "HTTP/1.1 200 OK");
  EXPECT_LT(lazy.rest().size(), kHuge);
}

TEST(Server, EventsReachAllThatListen) {
  Running running;
  std::list<Client> clients;
  for (int i = 0; i < 5; ++i) {
    Client& client = clients.emplace_back(running.port());
    client.send(get_text("/events"));
    EXPECT_EQ(status_of(client.until("retry: 2000\n\n")), "HTTP/1.1 200 OK");
    client.forget();
  }
  running.server().publish("changed", R"({"runs":["a"]})");
  running.server().publish("changed", R"({"runs":["b"]})");
  for (Client& client : clients) {
    EXPECT_EQ(client.until("[\"b\"]}\n\n"),
              "event: changed\ndata: {\"runs\":[\"a\"]}\n\n"
              "event: changed\ndata: {\"runs\":[\"b\"]}\n\n");
  }
}

TEST(Server, EventsHaveAHeartbeat) {
  ServerOptions options;
  options.heartbeat = 1ms;
  Running running(std::move(options));
  Client client(running.port());
  client.send(get_text("/events"));
  EXPECT_NE(client.until("\n\n:\n\n:\n\n").find(":\n\n:\n\n"),
            std::string::npos);
}

TEST(Server, TooManyEventClientsAreRefused) {
  ServerOptions options;
  options.max_event_clients = 3;
  Running running(std::move(options));
  std::list<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(running.port()).send(get_text("/events"));
    clients.back().until("retry");
  }
  EXPECT_EQ(status_of(exchange(running.port(), get_text("/events"))),
            "HTTP/1.1 503 Service Unavailable");
  EXPECT_EQ(body_of(exchange(running.port(), get_text("/"))), "hello");
  // One leaves, and as soon as that is seen there is room again.
  clients.pop_front();
  std::string status;
  do {
    Client next(running.port());
    next.send(get_text("/events"));
    status = status_of(next.until("\r\n"));
  } while (status == "HTTP/1.1 503 Service Unavailable");
  EXPECT_EQ(status, "HTTP/1.1 200 OK");
}

TEST(Server, AnEventClientThatDoesNotReadIsLeft) {
  Running running;
  Client lazy(running.port());
  lazy.send(get_text("/events"));
  lazy.until("retry");
  Client good(running.port());
  good.send(get_text("/events"));
  good.until("retry: 2000\n\n");
  // More than the system and the server hold for it.
  const std::string large(200'000, 'x');
  for (int i = 0; i < 100; ++i) {
    running.server().publish("large", large);
    good.until(large + "\n\n");
    good.forget();
  }
  running.server().publish("last", "");
  EXPECT_EQ(good.until("last").find("event: last"), 0U);
  EXPECT_EQ(lazy.rest().find("event: last"), std::string::npos);
}

TEST(Server, TooManyConnectionsAreRefused) {
  ServerOptions options;
  options.max_connections = 4;
  Running running(std::move(options));
  std::list<Client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(running.port()).send(get_text("/events"));
    clients.back().until("retry");
  }
  Client other(running.port());
  EXPECT_EQ(status_of(other.rest()), "HTTP/1.1 503 Service Unavailable");
}

TEST(Server, StopsWhileClientsHangOn) {
  Running running;
  std::list<Client> clients;
  for (const std::string& text : {get_text("/events"), get_text("/large"),
                                  std::string("GET"), std::string()}) {
    clients.emplace_back(running.port()).send(text);
  }
  clients.front().until("retry");
  running.stop();
  for (Client& client : clients) client.rest();  // ends
}

TEST(Server, StopsWhenAsked) {
  ServerOptions options;
  options.handler = answer;
  Server server(std::move(options));
  int asked = 0;
  server.run([&] { return ++asked == 2; });
  EXPECT_EQ(asked, 2);
}

TEST(Server, ATakenPortIsAnError) {
  Running running;
  ServerOptions options;
  options.port = running.port();
  EXPECT_EQ(
      message_of<std::runtime_error>(
          [&] { Server second(std::move(options)); }),
      "cannot listen on 127.0.0.1:" + std::to_string(running.port()) +
          ": another program has it; choose one with --port, or --port 0 for "
          "any");
}

}  // namespace server_test
}  // namespace polyattn::report
