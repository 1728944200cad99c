#ifndef TESTS_COMMON_CLUSTER_TENSORS_H_
#define TESTS_COMMON_CLUSTER_TENSORS_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"

namespace muster {

inline TensorDef MakeTensor(const std::string& name,
                            std::initializer_list<int64_t> shape) {
  TensorDef tensor;
  tensor.set_name(name);
  for (const int64_t size : shape) tensor.add_shape(size);
  tensor.set_dtype(FLOAT32);
  return tensor;
}

// The eight parameters of the MNIST CNN, in creation order.
inline std::vector<TensorDef> MnistCnnTensors() {
  return {MakeTensor("conv1/weights", {32, 1, 5, 5}),
          MakeTensor("conv1/bias", {32}),
          MakeTensor("conv2/weights", {64, 32, 5, 5}),
          MakeTensor("conv2/bias", {64}),
          MakeTensor("dense1/weights", {1024, 3136}),
          MakeTensor("dense1/bias", {1024}),
          MakeTensor("dense2/weights", {10, 1024}),
          MakeTensor("dense2/bias", {10})};
}

// Places the tensors, whole unless `spec` says how to cut them; returns the ps
// task of each. Errors: also Internal if one is not whole.
inline absl::StatusOr<std::vector<int>> PlaceOnTasks(
    absl::Span<const TensorDef> tensors, int num_ps, PlacementSpec spec) {
  if (!spec.has_partition()) spec.mutable_partition()->mutable_none();
  ASSIGN_OR_RETURN(const Placement placement,
                   PlaceTensors(tensors, num_ps, spec));
  RETURN_IF_ERROR(
      CheckPlacement(tensors, placement, num_ps, /*block_elements=*/1));
  std::vector<int> tasks;
  for (const std::vector<TensorExtent>& extents : placement) {
    if (extents.size() != 1) return absl::InternalError("a tensor was cut");
    tasks.push_back(extents.front().ps);
  }
  return tasks;
}

}  // namespace muster

#endif  // TESTS_COMMON_CLUSTER_TENSORS_H_
