#ifndef WORKER_CLIENT_PARAMETERS_IN_PLACE_H_
#define WORKER_CLIENT_PARAMETERS_IN_PLACE_H_

#include <memory>
#include <vector>

#include "worker/client/tensor_view.h"

namespace muster {

// Every parameter where its shard keeps it, and changes it while it is read.
struct ParametersInPlace {
  // One a tensor, aligned to AlignedBuffer::kAlignment.
  std::vector<TensorView> values;
  // What keeps them there, by ps task; null for one without tensors.
  std::vector<std::shared_ptr<const char>> memory;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PARAMETERS_IN_PLACE_H_
