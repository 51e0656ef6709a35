// The costs in use, and the file that keeps them between processes.
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

#include "core/planner.h"
#include "polyattn/plan.h"
#include "polyattn/target.h"

namespace polyattn {
namespace {

constexpr char kTitle[] = "polyattn path costs 2";

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

std::array<double*, 8> numbers_of(PathCost& cost) {
  return {&cost.row,   &cost.pair,    &cost.pair_width,    &cost.head,
          &cost.token, &cost.feature, &cost.feature_width, &cost.step};
}

bool read_cost(std::istream& in, const std::string& name, PathCost& cost) {
  std::string word;
  if (!(in >> word) || word != name) return false;
  for (double* number : numbers_of(cost)) {
    if (!(in >> *number) || !std::isfinite(*number) || *number < 0)
      return false;
  }
  return true;
}

// Nothing if the file is absent, of another machine, or damaged.
std::optional<PathCosts> read_file(const std::string& path) {
  std::ifstream in(path);
  std::string title, processor, rest;
  if (!std::getline(in, title) || title != kTitle) return std::nullopt;
  if (!std::getline(in, processor) || processor != processor_name())
    return std::nullopt;
  PathCosts costs;
  if (!read_cost(in, "forward", costs.forward) ||
      !read_cost(in, "backward", costs.backward) || in >> rest)
    return std::nullopt;
  return costs;
}

void write_cost(std::ostream& out, const char* name, PathCost cost) {
  out << name;
  for (const double* number : numbers_of(cost)) out << ' ' << *number;
  out << '\n';
}

// A new file takes the old one's place at once, so that nobody reads half.
bool write_file(const std::string& path, const PathCosts& costs) {
  namespace fs = std::filesystem;
  if (path.empty()) return false;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::string fresh = path + ".XXXXXX";
  const int file = ::mkstemp(fresh.data());
  if (file < 0) return false;
  ::close(file);
  std::ofstream out(fresh);
  out.precision(17);
  out << kTitle << '\n' << processor_name() << '\n';
  write_cost(out, "forward", costs.forward);
  write_cost(out, "backward", costs.backward);
  out.close();
  if (out) fs::rename(fresh, path, error);
  if (out && !error) return true;
  fs::remove(fresh, error);
  return false;
}

// Where nothing can be kept, every process must still decide the same: those of
// one machine (AVX2, 3.5 GHz), which are near enough for any.
constexpr PathCosts kUsual = {
    {.row = 0.2,
     .pair = 0.5,
     .pair_width = 0.026,
     .head = 1400,
     .token = 0.2,
     .feature = 0.16,
     .feature_width = 0.031,
     .step = 60},
    {.row = 0.7,
     .pair = 1.4,
     .pair_width = 0.064,
     .head = 3100,
     .token = 0.8,
     .feature = 0.65,
     .feature_width = 0.075,
     .step = 150},
};

// Of each target that was asked for.
struct Known {
  std::mutex mutex;
  std::map<std::string, PathCosts> by_target;
};

Known& known() {
  static Known costs;
  return costs;
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

PathCosts path_costs() {
  Known& costs = known();
  const std::lock_guard lock(costs.mutex);
  const auto found = costs.by_target.find(target_name());
  if (found != costs.by_target.end()) return found->second;
  const std::string path = path_costs_file();
  std::optional<PathCosts> read = read_file(path);
  if (!read) {
    read = measure_path_costs();
    if (!write_file(path, *read)) read = kUsual;
  }
  return costs.by_target[target_name()] = *read;
}

bool set_path_costs(const PathCosts& costs, bool keep) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.by_target[target_name()] = costs;
  return !keep || write_file(path_costs_file(), costs);
}

}  // namespace polyattn
