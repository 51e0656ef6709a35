// A config as TOML, and as a list for --help.
#include <fmt/format.h>

#include "base/text_table.h"
#include "train/run/config.h"
#include "train/run/fields.h"
#include "train/run/models.h"

namespace polyattn::run {
namespace {

std::string meaning_with_choices(const Field& field) {
  const std::string choices = choices_text(field);
  return choices.empty() ? std::string(field.meaning)
                         : fmt::format("{} ({})", field.meaning, choices);
}

}  // namespace

std::string config_text(const Config& config) {
  std::string text =
      "# Every choice of a run of polyattn. A key that is left out has the "
      "default of\n# its task.\n";
  for (const std::string_view section : section_names()) {
    text += fmt::format("\n[{}]\n", section);
    for (const Field& field : fields()) {
      if (field.section != section) continue;
      text += fmt::format(
          "{:<32}  # {}\n",
          fmt::format("{} = {}", field.key, value_text(field.get(config))),
          meaning_with_choices(field));
    }
  }
  return text;
}

std::vector<std::string> config_differences(const Config& a, const Config& b) {
  std::vector<std::string> differences;
  for (const Field& field : fields()) {
    const std::string in_a = value_text(field.get(a));
    const std::string in_b = value_text(field.get(b));
    if (in_a == in_b) continue;
    differences.push_back(
        fmt::format("{} is {}, not {}", field.name(), in_a, in_b));
  }
  return differences;
}

std::string describe_config(std::string_view task, std::string_view model) {
  const Config defaults = default_config(task, model);
  const unsigned kind = find_task(task)->kind;
  base::TextTable table({{"key", base::Align::kLeft},
                         {"default", base::Align::kLeft},
                         {"meaning", base::Align::kLeft}});
  for (const Field& field : fields()) {
    if ((field.tasks & kind) == 0) continue;
    table.add_row({field.name(), value_text(field.get(defaults)),
                   meaning_with_choices(field)});
  }
  return fmt::format("{}\nmodel.name is one of {}.\n", table.to_string(),
                     model_names(kind));
}

}  // namespace polyattn::run
