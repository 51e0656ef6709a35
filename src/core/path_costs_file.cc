// The file that keeps the costs of this machine, for who asks for them.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "polyattn/plan.h"
#include "polyattn/target.h"

namespace polyattn {
namespace {

constexpr char kTitle[] = "polyattn path costs 3";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A file from another machine must not count here.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string path_costs_file() {
  std::string folder = variable("POLYATTN_CACHE");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty())
    folder = variable("XDG_CACHE_HOME") + "/polyattn";
  if (folder.empty() && !variable("HOME").empty())
    folder = variable("HOME") + "/.cache/polyattn";
  if (folder.empty()) return {};
  return folder + "/plan-" + target_name() + ".txt";
}

std::optional<PathCosts> read_path_costs_file() {
  std::ifstream in(path_costs_file());
  std::string title, processor, costs, rest;
  if (!std::getline(in, title) || title != kTitle) return std::nullopt;
  if (!std::getline(in, processor) || processor != processor_name())
    return std::nullopt;
  if (!std::getline(in, costs) || std::getline(in, rest)) return std::nullopt;
  try {
    return parse_path_costs(costs);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

// A new file takes the old one's place at once, so that nobody reads half.
bool write_path_costs_file(const PathCosts& costs) {
  namespace fs = std::filesystem;
  const std::string path = path_costs_file();
  if (path.empty()) return false;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::string fresh = path + ".XXXXXX";
  const int file = ::mkstemp(fresh.data());
  if (file < 0) return false;
  ::close(file);
  std::ofstream out(fresh);
  out << kTitle << '\n' << processor_name() << '\n' << to_string(costs) << '\n';
  out.close();
  if (out) fs::rename(fresh, path, error);
  if (out && !error) return true;
  fs::remove(fresh, error);
  return false;
}

}  // namespace polyattn
