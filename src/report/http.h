// As much of HTTP as a page on one's own machine needs, and no more: requests
// without a body, one for each connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyattn::report {

// Request line and headers together.
inline constexpr std::size_t kMaxRequestBytes = 8192;

struct Request {
  std::string method;
  std::string path;        // without the query, not decoded
  std::string host;        // as it was sent
  std::string fetch_site;  // Sec-Fetch-Site; empty if it was not sent
};

struct ParsedRequest {
  bool complete = false;  // false: more bytes are needed
  int status = 0;         // 0, or the status to refuse it with
  Request request;
};

// The bytes of a connection so far. Refuses what is malformed (400), too long
// (431), of another version (505), neither GET nor HEAD (405), with a body
// (413), without Host or with two (400).
ParsedRequest parse_request(std::string_view bytes);

// Whether the name, with a port or without, is that of the machine itself. A
// page from elsewhere whose name was made to point here sends its own name.
bool is_local_host(std::string_view host);

// "404 Not Found"
std::string status_text(int status);

}  // namespace polyattn::report
