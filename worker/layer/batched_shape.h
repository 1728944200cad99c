#ifndef WORKER_LAYER_BATCHED_SHAPE_H_
#define WORKER_LAYER_BATCHED_SHAPE_H_

#include <cstdint>

#include "common/tensor/shape.h"

namespace muster {

// [batch_size, example...]. REQUIRES: `example` has rank 1 or 3, and the
// result is a valid Shape.
inline Shape BatchedShape(int64_t batch_size, const Shape& example) {
  if (example.rank() == 1) return {batch_size, example.dim(0)};
  return {batch_size, example.dim(0), example.dim(1), example.dim(2)};
}

}  // namespace muster

#endif  // WORKER_LAYER_BATCHED_SHAPE_H_
