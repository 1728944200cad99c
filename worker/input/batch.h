#ifndef WORKER_INPUT_BATCH_H_
#define WORKER_INPUT_BATCH_H_

#include <cstdint>
#include <vector>

#include "common/tensor/aligned_buffer.h"

namespace muster {

// The examples of one step. Buffers are made once, for the largest number of
// rows, and used again.
struct Batch {
  // float32 [rows, example shape...] in [0, 1], row-major; rows after `rows`
  // hold nothing of meaning.
  AlignedBuffer examples;
  // int32 [rows], each in [0, classes).
  std::vector<int32_t> labels;
  int64_t rows = 0;
  // The number of these contents: no other filling of any batch has it; 0:
  // none.
  int64_t id = 0;
};

// A batch, and what a step with it draws from where it is random (dropout).
struct SeededBatch {
  // Null: none.
  const Batch* batch = nullptr;
  uint64_t seed = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_BATCH_H_
