// Files and messages for the tests of runs.
#pragma once

#include <string>
#include <vector>

#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "train/run/config.h"

namespace polyattn::run::test {

using polyattn::test::message_of;
using polyattn::test::read_text;
using polyattn::test::TemporaryFolder;
using polyattn::test::write_text;

inline std::vector<Setting> settings_of(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  settings.reserve(texts.size());
  for (const std::string& text : texts) settings.push_back(parse_setting(text));
  return settings;
}

}  // namespace polyattn::run::test
