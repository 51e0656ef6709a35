#include "report/grids.h"

#include <set>
#include <stdexcept>

#include "base/json_text.h"
#include "report/files.h"

namespace polyattn::report {
namespace {

constexpr std::size_t kMaxGridFileBytes = 1 << 20;

}  // namespace

base::Json grids_of(const std::vector<RunFiles*>& runs) {
  base::Json grids = base::Json::array();
  std::set<std::filesystem::path> seen;
  for (const RunFiles* run : runs) {
    const std::filesystem::path folder = run->folder().parent_path();
    const std::filesystem::path file = folder / "grid.json";
    if (!seen.insert(folder).second || !file_state(file).exists()) continue;
    try {
      base::Json grid =
          base::parse_json(read_file(file, kMaxGridFileBytes, run->root()));
      if (grid.is_object() && grid.contains("rows") && !grid["rows"].empty()) {
        grids.push_back(std::move(grid));
      }
    } catch (const std::runtime_error&) {
      // Without it the runs can be shown all the same.
    }
  }
  return grids;
}

}  // namespace polyattn::report
