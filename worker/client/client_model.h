#ifndef WORKER_CLIENT_CLIENT_MODEL_H_
#define WORKER_CLIENT_CLIENT_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "proto/parameter_service.pb.h"
#include "proto/tensor.pb.h"
#include "worker/client/tensor_view.h"
#include "worker/client/transfer_plan.h"

namespace muster {

// What the client knows of the model on the shards: which tensor is where, how
// it is cut into parts, and the fences that its messages carry. A value type.
struct ClientModel {
  Sender sender;
  std::vector<TensorDef> tensors;  // in creation order
  std::vector<int> placement;      // the ps task of each tensor
  TransferPlan plan;
  std::vector<Fence> fences;  // by ps task
  // Gradients are computed from values where the shards keep them, which every
  // answer to a push makes new ones.
  bool in_place = false;

  // Bytes of one element of a tensor's value (slot "") or slot. The slot "t"
  // counts updates: one INT64 for each block.
  int64_t ElementBytes(int tensor, absl::string_view slot) const;

  // Of a tensor's value.
  int64_t TensorBytes(int tensor) const {
    return NumElements(tensor, "") * ElementBytes(tensor, "");
  }

  // One element for each unit of TensorSlice: the elements of the tensor, or
  // its blocks for the slot "t".
  int64_t NumElements(int tensor, absl::string_view slot) const;

  // The slice as messages name it.
  void FillSlice(const PlannedSlice& slice, TensorSlice* message) const;

  // Checks that there is one view a tensor, each with the tensor's bytes.
  // Errors: InvalidArgument naming the first that differs.
  absl::Status CheckViews(absl::Span<const TensorView> views) const;
  absl::Status CheckViews(absl::Span<const MutableTensorView> views) const;
};

// What all float32 values take that `codec` encodes (null: as they are).
int64_t BytesOnTheWay(const TransferPlan& plan, const Codec* codec);

// Writes the float32 values in `data`, encoded by `codec` (null: as they are),
// to the slices' places in `into` (one view a tensor). Errors: Internal if
// `data` is not as long as the slices.
absl::Status ScatterValues(const PlannedPart& part, const Codec* codec,
                           const absl::Cord& data,
                           absl::Span<const MutableTensorView> into);

}  // namespace muster

#endif  // WORKER_CLIENT_CLIENT_MODEL_H_
