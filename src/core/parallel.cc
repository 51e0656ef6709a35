// The two ways to run tasks that need nothing from the caller.
#include "polyattn/parallel.h"

#include <exception>
#include <stdexcept>
#include <string>

#ifdef POLYATTN_HAVE_OPENMP
#include <omp.h>
#endif

namespace polyattn {
namespace {

int default_workers() {
#ifdef POLYATTN_HAVE_OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

#ifdef POLYATTN_HAVE_OPENMP
// Inside another parallel region OpenMP gives this one a team of its own,
// often of one thread; numbers within a team are distinct either way.
void run_openmp(std::int64_t tasks, int workers, const TaskBody& body) {
  std::exception_ptr error;  // may not leave the region on its own
#pragma omp parallel for schedule(dynamic, 1) num_threads(workers)
  for (std::int64_t task = 0; task < tasks; ++task) {
    try {
      body(task, omp_get_thread_num());
    } catch (...) {
#pragma omp critical(polyattn_task_error)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}
#endif

}  // namespace

void SerialParallel::run(std::int64_t tasks, TaskBody body) {
  for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
}

DefaultParallel::DefaultParallel(int threads)
    : workers_(threads == 0 ? default_workers() : threads) {
  if (threads < 0) {
    throw std::invalid_argument("[DefaultParallel] threads " +
                                std::to_string(threads) + " < 0");
  }
#ifndef POLYATTN_HAVE_OPENMP
  workers_ = 1;
#endif
}

void DefaultParallel::run(std::int64_t tasks, TaskBody body) {
#ifdef POLYATTN_HAVE_OPENMP
  if (workers_ > 1 && tasks > 1) return run_openmp(tasks, workers_, body);
#endif
  SerialParallel().run(tasks, body);
}

}  // namespace polyattn
