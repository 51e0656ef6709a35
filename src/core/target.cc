#include "polyattn/target.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "core/dispatch.h"

namespace polyattn {
namespace {

// Asked for once: Highway asks the processor each time, which takes tens of
// microseconds on a virtual machine, and every call of a kernel comes here.
std::int64_t runnable() {
  static const std::int64_t both = hwy::SupportedTargets() & HWY_TARGETS;
  return both != 0 ? both : HWY_STATIC_TARGET;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string name_of_target(std::int64_t bit) {
  return lower(hwy::TargetName(bit));
}

// The lowest bit is the best target.
std::int64_t best(std::int64_t targets) { return targets & -targets; }

std::int64_t find_target(std::string_view name) {
  for (std::int64_t left = runnable(); left != 0; left &= left - 1) {
    if (name_of_target(best(left)) == lower(name)) return best(left);
  }
  std::string known;
  for (const std::string& s : supported_targets())
    known += (known.empty() ? "" : ", ") + s;
  throw std::invalid_argument("[target] \"" + std::string(name) +
                              "\" is not a target of this machine and build; "
                              "there are: " +
                              known);
}

std::int64_t default_target() {
  const char* wanted = std::getenv("POLYATTN_TARGET");
  if (wanted != nullptr && *wanted != '\0') return find_target(wanted);
  return best(runnable());
}

// The bit of the target in use; 0 until the first call.
std::atomic<std::int64_t>& current() {
  static std::atomic<std::int64_t> bit{0};
  return bit;
}

std::int64_t target_in_use() {
  std::int64_t bit = current().load();
  if (bit == 0) {
    bit = default_target();
    current().store(bit);
  }
  return bit;
}

}  // namespace

hwy::ChosenTarget& chosen_target() {
  static hwy::ChosenTarget chosen;
  // A file that was not compiled for this target takes the next best one.
  const std::int64_t bit = target_in_use();
  chosen.Update(runnable() & ~(bit - 1));
  return chosen;
}

std::string target_name() { return name_of_target(target_in_use()); }

std::vector<std::string> supported_targets() {
  std::vector<std::string> names;
  for (std::int64_t left = runnable(); left != 0; left &= left - 1)
    names.push_back(name_of_target(best(left)));
  return names;
}

void force_target(std::string_view name) {
  current().store(name.empty() ? default_target() : find_target(name));
}

}  // namespace polyattn
