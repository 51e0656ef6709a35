#include "train/run/problems.h"

#include <fmt/format.h>

namespace polyattn::run {
namespace {

constexpr std::size_t kMaxShown = 10;

}  // namespace

bool Problems::enough() const { return messages_.size() >= kMaxShown; }

void Problems::add(const std::string& where, const std::string& message) {
  ++count_;
  if (enough()) return;
  messages_.push_back(where.empty() ? message : where + ": " + message);
}

void Problems::check(std::string_view subject) const {
  if (empty()) return;
  if (count_ == 1) {
    throw ConfigError(fmt::format("[{}] {}", subject, messages_.front()));
  }
  std::string text = fmt::format("[{}] {} problems:", subject, count_);
  for (const std::string& message : messages_) text += "\n  " + message;
  if (count_ > messages_.size()) {
    text += fmt::format("\n  and {} more", count_ - messages_.size());
  }
  throw ConfigError(text);
}

std::string place_text(std::string_view source, int line, int column) {
  if (line == 0) return std::string(source);
  return fmt::format("{}:{}:{}", source, line, column);
}

}  // namespace polyattn::run
