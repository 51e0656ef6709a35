// A loop over the cores.
#pragma once

#include <cstddef>
#include <functional>

namespace polyattn::data {

// Calls task(i) for every i below count, on so many threads; 0: as many as
// there are cores. If tasks throw, then what the one of the smallest i threw is
// thrown here: the same error whatever the threads do. Tasks beyond it may be
// left out.
void run_parallel(std::size_t count,
                  const std::function<void(std::size_t)>& task,
                  std::size_t threads = 0);

}  // namespace polyattn::data
