// "Did you mean": the known name that a mistyped one is nearest to.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "train/run/tasks.h"

namespace polyattn::run {

// Characters to insert, delete, replace or swap with their neighbour to make
// one text of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Nothing if none is near enough to be meant: a third of the characters of the
// longer name may differ, or one.
std::optional<std::string_view> nearest(
    std::string_view name, std::span<const std::string_view> known);

// What to say of a key that does not exist: the same key of another section,
// the nearest one, or all of its section. `section` may be unknown, or empty
// for a key that stands outside of all.
std::string advice_on_key(std::string_view section, std::string_view key);

// The same for the name of a section, and of a task.
std::string advice_on_section(std::string_view section);
std::string advice_on_task(std::string_view task);

// The same for a model that a task does not have.
std::string advice_on_model(std::string_view model, const TaskEntry& task);

}  // namespace polyattn::run
