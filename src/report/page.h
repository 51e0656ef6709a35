// The page around a document: one HTML file that needs nothing else.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace polyattn::report {

// Stands once in the page, where the document goes.
inline constexpr std::string_view kPlaceholder = "\"__POLYATTN_REPORT__\"";

// The page with the document in it. Throws std::runtime_error unless the
// placeholder stands in `page` exactly once.
std::string fill_page(std::string_view page, std::string_view document);

struct Written {
  std::size_t runs = 0;
  std::size_t bytes = 0;
  std::vector<std::string> warnings;
};

// Makes the document of the runs in `folders`, thinned so that with the page it
// stays within kMaxPageBytes, and writes both to `out`, which appears whole or
// not at all. Throws std::runtime_error, also if `page` is empty: a build
// without the page has none (report/embedded_page.h).
Written write_report(const std::vector<std::filesystem::path>& folders,
                     const std::filesystem::path& out, DocumentOptions options,
                     std::string_view page);

}  // namespace polyattn::report
