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

void Problems::check() const {
  if (empty()) return;
  if (count_ == 1) throw ConfigError("[config] " + messages_.front());
  std::string text = fmt::format("[config] {} problems:", count_);
  for (const std::string& message : messages_) text += "\n  " + message;
  if (count_ > messages_.size()) {
    text += fmt::format("\n  and {} more", count_ - messages_.size());
  }
  throw ConfigError(text);
}

}  // namespace polyattn::run
