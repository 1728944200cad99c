#ifndef WORKER_CLIENT_CLIENT_MODEL_H_
#define WORKER_CLIENT_CLIENT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "proto/parameter_service.pb.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "worker/client/transfer_plan.h"

namespace muster {

// The bytes of a tensor (or of a run of its elements), canonical, in the
// caller's memory.
struct TensorView {
  const char* data = nullptr;
  int64_t size_bytes = 0;
};

struct MutableTensorView {
  char* data = nullptr;
  int64_t size_bytes = 0;
};

inline constexpr int kNoShard = -1;

template <typename T>
TensorView ViewOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

template <typename T>
MutableTensorView MutableViewOf(absl::Span<T> values) {
  return {reinterpret_cast<char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

// The model on the shards as a client knows it: which tensor is where, how it
// is cut into parts, and the fences that messages carry. A value type.
struct ClientModel {
  Sender sender;
  std::vector<TensorDef> tensors;  // in creation order
  Placement placement;
  TransferPlan plan;
  std::vector<TableDef> tables;  // by number
  std::vector<Fence> fences;     // by ps task
  // The bytes of a part that suit the way to each ps task.
  std::vector<int64_t> part_bytes;
  // The ps task in this process, in all-reduce; else kNoShard.
  int own_shard = kNoShard;
  // Gradients are computed from values where the shards keep them, in no order
  // (InPlaceOrder::kNone): every answer to a push makes them new ones.
  bool in_place = false;

  // Bytes of one element of a tensor's value (slot "") or slot. The slot "t"
  // counts updates: one INT64 for each block.
  int64_t ElementBytes(int tensor, absl::string_view slot) const;

  // Bytes of a tensor's value.
  int64_t TensorBytes(int tensor) const {
    return NumElements(tensor, "") * ElementBytes(tensor, "");
  }

  // One element for each unit of TensorSlice: the elements of the tensor, or
  // its blocks for the slot "t".
  int64_t NumElements(int tensor, absl::string_view slot) const;

  // An extent of a tensor's elements in units of TensorSlice: of the value or
  // a slot.
  TensorExtent InUnits(const TensorExtent& extent,
                       absl::string_view slot) const;

  // Checks that each tensor lies in one piece on its ps task: the condition of
  // who reads or holds parameters where their shard keeps them. Errors:
  // FailedPrecondition naming those that do not.
  absl::Status CheckIsWhole() const;

  // Checks that the model has no tables, whose rows `way` does not carry.
  // Errors: InvalidArgument naming the first.
  absl::Status CheckHasNoTables(absl::string_view way) const;

  // The sender and the fence of a message to a shard.
  template <typename Message>
  void FillHead(int shard, Message* message) const {
    *message->mutable_sender() = sender;
    *message->mutable_fence() = fences[shard];
  }

  // The slice as messages name it.
  void FillSlice(const PlannedSlice& slice, TensorSlice* message) const;

  // Checks that there is one view a tensor, each with the tensor's bytes.
  // Errors: InvalidArgument naming the first that differs.
  absl::Status CheckViews(absl::Span<const TensorView> views) const;
  // The same, but that those of frozen tensors have no bytes.
  absl::Status CheckGradients(absl::Span<const TensorView> views) const;
  absl::Status CheckViews(absl::Span<const MutableTensorView> views) const;

  // Checks that `ids` rows of a table, which is the model's, have so many
  // values ("gradients"). Errors: InvalidArgument naming the table.
  absl::Status CheckRows(int table, absl::string_view what, size_t ids,
                         size_t values) const;
};

// Errors: InvalidArgument for a table that no ps task can have, or whose name
// a tensor or another table has.
absl::Status CheckTables(absl::Span<const TableDef> tables,
                         absl::Span<const TensorDef> tensors);

// Which values were pulled: a push of gradients that were computed from them
// says so to each shard.
struct PulledVersions {
  // The model that they are of, with its fences.
  std::shared_ptr<const ClientModel> model;
  // [ps task][part]
  std::vector<std::vector<int64_t>> parts;
  // The bytes of the values that have come: on the way, those of them that came
  // from other processes than this one, and as float32.
  int64_t bytes = 0;
  int64_t others_bytes = 0;
  int64_t float32_bytes = 0;
};

// A pull is of all parts, a push of those that are not frozen.
enum class PartsOf { kPull, kPush };

// The bytes of the float32 values of these parts as `codec` encodes them (null:
// as they are), without those of the shard `except`.
int64_t BytesOnTheWay(const TransferPlan& plan, PartsOf parts,
                      const Codec* codec, int except = kNoShard);

// Writes the float32 values in `data`, encoded by `codec` (null: as they are),
// to the slices' places in `into` (one view a tensor). Errors: Internal if
// `data` is not as long as the slices.
absl::Status ScatterValues(const PlannedPart& part, const Codec* codec,
                           const absl::Cord& data,
                           absl::Span<const MutableTensorView> into);

}  // namespace muster

#endif  // WORKER_CLIENT_CLIENT_MODEL_H_
