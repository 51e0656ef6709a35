#include "report/page.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "base/text_file.h"
#include "report/text.h"

namespace polyattn::report {
std::string fill_page(std::string_view page, std::string_view document) {
  const std::size_t place = page.find(kPlaceholder);
  if (place == std::string_view::npos ||
      page.find(kPlaceholder, place + 1) != std::string_view::npos) {
    throw std::runtime_error(fmt::format(
        "the page of this build is damaged: {} stands in it {}, not once; "
        "build polyattn again",
        kPlaceholder,
        place == std::string_view::npos ? "nowhere" : "more than once"));
  }
  std::string filled(page.substr(0, place));
  filled += script_safe(document);
  filled += page.substr(place + kPlaceholder.size());
  return filled;
}

Written write_report(const std::vector<std::filesystem::path>& folders,
                     const std::filesystem::path& out, DocumentOptions options,
                     std::string_view page) {
  if (page.empty()) {
    throw std::runtime_error(
        "this build has no page to put the report in: configure it with "
        "-DPOLYATTN_PAGE=ON, where npm is installed");
  }
  options.max_bytes =
      kMaxPageBytes > page.size() ? kMaxPageBytes - page.size() : 0;
  Document document = make_document(folders, options);
  const std::string text = fill_page(page, document.text);
  base::write_text_file(out, text);
  return {document.runs, text.size(), std::move(document.warnings)};
}

}  // namespace polyattn::report
