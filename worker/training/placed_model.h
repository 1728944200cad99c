#ifndef WORKER_TRAINING_PLACED_MODEL_H_
#define WORKER_TRAINING_PLACED_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/cluster/placement.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "worker/client/chief_client.h"

namespace muster {

// A model as the shards are told of it.
struct PlacedModel {
  // The parameters, in creation order.
  std::vector<TensorDef> tensors;
  // Its sparse tables, of which every ps task has a part.
  std::vector<TableDef> tables;
  Placement placement;
  ModelDefinition definition;
};

// Bytes of a tensor that pass through the chief's memory at a time when it
// loads or saves: well under the 64 MiB that it may use.
inline constexpr int64_t kTransferBytes = int64_t{16} << 20;

// Calls function(offset, count) for consecutive runs of at most kTransferBytes
// until one fails; returns that status.
template <typename Function>
auto ForEachRun(int64_t elements, int64_t element_bytes, Function&& function)
    -> decltype(function(int64_t{0}, int64_t{0})) {
  const int64_t longest = kTransferBytes / element_bytes;
  for (int64_t offset = 0; offset < elements; offset += longest) {
    const auto status = function(offset, std::min(longest, elements - offset));
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace muster

#endif  // WORKER_TRAINING_PLACED_MODEL_H_
