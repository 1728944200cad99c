#ifndef WORKER_INPUT_INPUT_THREADS_H_
#define WORKER_INPUT_INPUT_THREADS_H_

#include "proto/training.pb.h"

namespace muster {

// The most of input.threads.
inline constexpr int kMaxInputThreads = 256;

// The threads that prepare rows: input.threads, or, if that is 0, as many as
// compute where rows are decoded or mapped, and 1 where they are only copied.
int InputThreads(const InputSpec& spec, int compute_threads);

}  // namespace muster

#endif  // WORKER_INPUT_INPUT_THREADS_H_
