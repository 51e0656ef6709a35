// How kernels run in parallel: the caller hands in something that can run
// numbered tasks. Kernels start no threads of their own, and cut their work by
// shape alone, so every Parallel gives bitwise the same results.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace polyattn {

// A reference to a callable void(std::int64_t task, int worker), valid during
// the call it is handed to.
class TaskBody {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TaskBody>)
      // NOLINTNEXTLINE(google-explicit-constructor): used as a parameter
      TaskBody(F&& body)
      : object_(
            const_cast<void*>(static_cast<const void*>(std::addressof(body)))),
        call_([](void* object, std::int64_t task, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task, worker);
        }) {}

  void operator()(std::int64_t task, int worker) const {
    call_(object_, task, worker);
  }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, int);
};

class Parallel {
 public:
  virtual ~Parallel() = default;

  // Number of workers that may be inside run() at the same time.
  virtual int workers() const = 0;

  // Calls body(task, worker) once for each task in [0, tasks), in any order,
  // with worker in [0, workers()) and no two calls at once with one worker
  // number; returns when all are done. Low task numbers should start first:
  // they are the long ones.
  virtual void run(std::int64_t tasks, TaskBody body) = 0;
};

// One worker: the calling thread.
class SerialParallel final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(std::int64_t tasks, TaskBody body) override;
};

// OpenMP where the library was built with it, otherwise the calling thread.
class DefaultParallel final : public Parallel {
 public:
  // 0 threads: as many as OpenMP would use.
  explicit DefaultParallel(int threads = 0);
  int workers() const override { return workers_; }
  void run(std::int64_t tasks, TaskBody body) override;

 private:
  int workers_;
};

}  // namespace polyattn
