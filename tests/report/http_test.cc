// Requests, well-formed and not.
#include "report/http.h"

#include <gtest/gtest.h>

#include <string>

namespace polyattn::report {
namespace http_test {

const std::string kHost = "Host: localhost:8080\r\n";

int status_of_request(const std::string& text) {
  const ParsedRequest parsed = parse_request(text);
  EXPECT_TRUE(parsed.complete) << text;
  return parsed.status;
}

TEST(ParseRequest, TakesWhatABrowserSends) {
  const ParsedRequest parsed = parse_request(
      "GET /api/report?since=5&x=%20 HTTP/1.1\r\n"
      "HOST:\t127.0.0.1:8080  \r\n"
      "User-Agent: Mozilla/5.0 (\xC3\xA9; x)\r\n"
      "sec-fetch-site: same-origin\r\n"
      "Content-Length: 0\r\n\r\n");
  EXPECT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.status, 0);
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/api/report");
  EXPECT_EQ(parsed.request.host, "127.0.0.1:8080");
  EXPECT_EQ(parsed.request.fetch_site, "same-origin");
}

TEST(ParseRequest, WaitsForTheEnd) {
  const std::string text = "GET / HTTP/1.1\r\n" + kHost + "\r\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse_request(text.substr(0, length)).complete) << length;
  }
  EXPECT_TRUE(parse_request(text).complete);
}

TEST(ParseRequest, RefusesWhatIsMalformed) {
  for (const std::string& text :
       {std::string("\r\n\r\n"), "GET\r\n" + kHost + "\r\n",
        "GET /\r\n" + kHost + "\r\n", "GET  HTTP/1.1\r\n" + kHost + "\r\n",
        "GET / HTP/1.1\r\n" + kHost + "\r\n", "GET / \r\n" + kHost + "\r\n",
        "GET / a HTTP/1.1\r\n" + kHost + "\r\n",
        "GET x HTTP/1.1\r\n" + kHost + "\r\n",
        "GET http://localhost/ HTTP/1.1\r\n" + kHost + "\r\n",
        "GET * HTTP/1.1\r\n" + kHost + "\r\n",
        "GET /\xC3\xA9 HTTP/1.1\r\n" + kHost + "\r\n",
        "G(T / HTTP/1.1\r\n" + kHost + "\r\n",
        " GET / HTTP/1.1\r\n" + kHost + "\r\n",
        std::string("GET / HTTP/1.1\r\n\r\n"),
        "GET / HTTP/1.1\r\n" + kHost + kHost + "\r\n",
        "GET / HTTP/1.1\r\n" + kHost + "no colon\r\n\r\n",
        "GET / HTTP/1.1\r\n" + kHost + ": no name\r\n\r\n",
        "GET / HTTP/1.1\r\n" + kHost + "space : x\r\n\r\n",
        "GET / HTTP/1.1\r\n" + kHost + " folded\r\n\r\n"}) {
    EXPECT_EQ(status_of_request(text), 400) << text;
  }
}

TEST(ParseRequest, RefusesBytesThatNoRequestHasAtOnce) {
  EXPECT_EQ(status_of_request(std::string("\x16\x03\x01\x02", 4)), 400);
  EXPECT_EQ(status_of_request(std::string("GET /\0", 6)), 400);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\n"), 400);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\rX"), 400);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\r\nHost: localhost\r\r\n\r\n"),
            400);
  EXPECT_EQ(status_of_request("GET /\x7F"), 400);
}

TEST(ParseRequest, RefusesOtherMethodsVersionsAndBodies) {
  for (const char* method :
       {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PRI"}) {
    EXPECT_EQ(status_of_request(std::string(method) + " / HTTP/1.1\r\n" +
                                kHost + "Content-Length: 5\r\n\r\n"),
              405)
        << method;
  }
  EXPECT_EQ(status_of_request("GET / HTTP/2.0\r\n" + kHost + "\r\n"), 505);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\r\n" + kHost +
                              "content-length: 1\r\n\r\n"),
            413);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\r\n" + kHost +
                              "Content-Length: -0\r\n\r\n"),
            413);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\r\n" + kHost +
                              "Transfer-Encoding: chunked\r\n\r\n"),
            413);
}

TEST(ParseRequest, RefusesWhatIsTooLong) {
  EXPECT_EQ(status_of_request("GET /" + std::string(kMaxRequestBytes, 'a')),
            431);
  EXPECT_EQ(status_of_request("GET / HTTP/1.1\r\n" + kHost + "X: " +
                              std::string(kMaxRequestBytes, 'a') + "\r\n\r\n"),
            431);
  std::string many = "GET / HTTP/1.1\r\n" + kHost;
  while (many.size() <= kMaxRequestBytes) many += "X: y\r\n";
  EXPECT_EQ(status_of_request(many), 431);
  EXPECT_EQ(status_of_request("GET /" + std::string(8000, 'a') +
                              " HTTP/1.1\r\n" + kHost + "\r\n"),
            0);
}

TEST(IsLocalHost, KnowsOwnNamesOnly) {
  for (const char* host :
       {"localhost", "LOCALHOST", "localhost:8080", "127.0.0.1", "127.0.0.1:80",
        "[::1]", "[::1]:65535"}) {
    EXPECT_TRUE(is_local_host(host)) << host;
  }
  for (const char* host :
       {"", "example.org", "localhost.example.org", "localhost:", "localhost:x",
        "localhost:80:80", "localhost:123456", "localhostx", "127.0.0.1.nip.io",
        "127.0.0.2", "127.0.0.1:-1", "::1", "[::1", "[::2]", "0.0.0.0",
        "evil@localhost", "localhost/", "user:localhost"}) {
    EXPECT_FALSE(is_local_host(host)) << host;
  }
}

}  // namespace http_test
}  // namespace polyattn::report
