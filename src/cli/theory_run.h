// `polyattn theory --run`, as far as it needs torch.
#pragma once

#include "theory/report_trained.h"

namespace polyattn::cli {

extern const theory::RunReader kRunReader;

}  // namespace polyattn::cli
