// Any bytes are a request, a refusal with a status that there is, or too few;
// a request is what the rest of the dashboard takes it for, and arriving piece
// by piece it is never anything else than at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "report/http.h"

namespace {

using polyattn::report::is_local_host;
using polyattn::report::parse_request;
using polyattn::report::ParsedRequest;

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

void check_request(const polyattn::report::Request& request) {
  require(request.method == "GET" || request.method == "HEAD", "a method");
  require(!request.path.empty() && request.path.front() == '/', "a path");
  require(std::all_of(request.path.begin(), request.path.end(),
                      [](char c) { return c > ' ' && c <= '~' && c != '?'; }),
          "a path with other bytes");
  for (const std::string& value : {request.host, request.fetch_site}) {
    require(
        value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
        "a header with a line end");
  }
  if (!is_local_host(request.host)) return;
  const std::string_view host = request.host;
  require(host.size() <= 15 && host.find_first_of("@/?#% ") == host.npos,
          "a host that is not ours");
}

void check_status(int status) {
  require(status >= 400 && status < 600, "a refusal that is none");
  require(polyattn::report::status_text(status).find("Unknown") ==
              std::string::npos,
          "a status without a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // A copy, so that the sanitizer sees what is read beyond its end.
  const std::string bytes(data, data + size);
  const ParsedRequest whole = parse_request(bytes);
  if (whole.complete && whole.status == 0) check_request(whole.request);
  if (whole.complete && whole.status != 0) check_status(whole.status);
  is_local_host(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const ParsedRequest part = parse_request(bytes.substr(0, i));
    if (!part.complete) continue;
    require(part.status == whole.status &&
                part.request.path == whole.request.path &&
                part.request.host == whole.request.host,
            "it depends on where it was cut");
    break;
  }
  return 0;
}
