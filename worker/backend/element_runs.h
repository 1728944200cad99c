#ifndef WORKER_BACKEND_ELEMENT_RUNS_H_
#define WORKER_BACKEND_ELEMENT_RUNS_H_

#include <cstdint>
#include <limits>

namespace muster {

// Where the elements of some rows and channels lie among those of the whole
// batch, by row-major index: in runs of `length`, of which the first begins at
// `first` and each `stride` after the one before it. By default all in one.
struct ElementRuns {
  int64_t first = 0;
  int64_t length = std::numeric_limits<int64_t>::max();
  int64_t stride = 0;

  // The row-major index of the i-th of them. constexpr: nvcc lets kernels call
  // it.
  constexpr int64_t IndexOf(int64_t i) const {
    const int64_t run = i / length;
    return first + run * stride + (i - run * length);
  }
};

}  // namespace muster

#endif  // WORKER_BACKEND_ELEMENT_RUNS_H_
