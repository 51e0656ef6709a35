#include "report/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace polyattn::report {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr std::string_view kEndOfRequest = "\r\n\r\n";

bool is_token_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), is_token_character);
}

// Neither line ends on their own nor other bytes that no request has: whoever
// speaks TLS to us is told at once.
bool has_forbidden_byte(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') return true;
    if (c == '\n' && (i == 0 || bytes[i - 1] != '\r')) return true;
    if (c == '\x7F') return true;
    if (static_cast<unsigned char>(c) < ' ' && c != '\r' && c != '\n' &&
        c != '\t') {
      return true;
    }
  }
  return false;
}

char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_case(c);
  return lower;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t") - start + 1);
}

// The next line, which is taken off.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find(kEndOfLine);
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(line.size() + kEndOfLine.size(), rest.size()));
  return line;
}

// 0, or the status to refuse with.
int parse_request_line(std::string_view line, Request& request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || version.substr(0, 5) != "HTTP/") return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return 505;
  const bool plain = std::all_of(target.begin(), target.end(),
                                 [](char c) { return c > ' ' && c < '\x7F'; });
  if (!plain || target.empty() || target.front() != '/') return 400;
  request.method = method;
  request.path = target.substr(0, target.find('?'));
  return method == "GET" || method == "HEAD" ? 0 : 405;
}

class HeaderReader {
 public:
  explicit HeaderReader(Request& request) : request_(request) {}

  int read(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return 400;
    if (!is_token(line.substr(0, colon))) return 400;
    const std::string name = lower_case(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (name == "host") {
      request_.host = value;
      if (++hosts_ > 1) return 400;
    } else if (name == "sec-fetch-site") {
      request_.fetch_site = value;
    } else if (name == "transfer-encoding" ||
               (name == "content-length" && value != "0")) {
      return 413;
    }
    return 0;
  }

  int finish() const { return hosts_ == 1 ? 0 : 400; }

 private:
  Request& request_;
  int hosts_ = 0;
};

int parse_head(std::string_view head, Request& request) {
  if (const int status = parse_request_line(take_line(head), request)) {
    return status;
  }
  HeaderReader headers(request);
  while (!head.empty()) {
    if (const int status = headers.read(take_line(head))) return status;
  }
  return headers.finish();
}

}  // namespace

ParsedRequest parse_request(std::string_view bytes) {
  const std::size_t end = bytes.find(kEndOfRequest);
  const std::string_view head = bytes.substr(0, end);
  ParsedRequest parsed;
  parsed.complete = true;
  // With its end, so that the last line may not have an end too many.
  if (has_forbidden_byte(bytes.substr(
          0, std::min(head.size(), kMaxRequestBytes) + kEndOfRequest.size()))) {
    parsed.status = 400;
  } else if (head.size() > kMaxRequestBytes) {
    parsed.status = 431;
  } else if (end == std::string_view::npos) {
    parsed.complete = false;
  } else {
    parsed.status = parse_head(head, parsed.request);
  }
  return parsed;
}

bool is_local_host(std::string_view host) {
  const std::string name = lower_case(host);
  for (const std::string_view own : {"127.0.0.1", "localhost", "[::1]"}) {
    if (name.compare(0, own.size(), own) != 0) continue;
    // Any port: a tunnel may have another at its other end.
    std::string_view rest = name;
    rest.remove_prefix(own.size());
    if (rest.empty()) return true;
    const std::string_view port = rest.substr(1);
    return rest.front() == ':' && !port.empty() && port.size() <= 5 &&
           std::all_of(port.begin(), port.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

std::string status_text(int status) {
  constexpr std::array<std::pair<int, const char*>, 11> kTexts = {{
      {200, "OK"},
      {400, "Bad Request"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  }};
  for (const auto& [number, text] : kTexts) {
    if (number == status) return fmt::format("{} {}", status, text);
  }
  return fmt::format("{} Unknown", status);
}

}  // namespace polyattn::report
