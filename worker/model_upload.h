#ifndef WORKER_MODEL_UPLOAD_H_
#define WORKER_MODEL_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/rpc/parameter_link.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/session_messages.h"

namespace muster {

// A model, as the shards are told of it.
struct PlacedModel {
  // In creation order.
  std::vector<TensorDef> tensors;
  // The ps task of each.
  std::vector<int> placement;
  OptimizerSpec optimizer;
  ReplicationSpec replication;
  uint64_t fingerprint = 0;
};

// The name of the slot that counts the updates of each block (INT64).
inline constexpr char kCountSlot[] = "t";

// Elements of a tensor, or of one of its slots.
int64_t ElementsOf(const TensorDef& tensor, absl::string_view slot);
// Bytes of one such element.
int64_t ElementBytes(absl::string_view slot);

// Loads one model into every shard at one epoch: Define, Load for each tensor
// and slot, Seal. Waits for each answer; not thread-safe.
// Errors: those of ParameterLink, naming what was sent.
class ModelUpload {
 public:
  // All outlive this. `shards` by ps task.
  ModelUpload(const Clock* clock, absl::Span<ParameterLink* const> shards,
              const Sender& sender, const PlacedModel* model,
              const LoadModel& epoch);

  // Returns the slots of each trainable tensor.
  absl::StatusOr<std::vector<std::string>> Define();

  // Writes `count` elements from `offset` on to `dst`.
  using Read =
      std::function<absl::Status(int64_t offset, int64_t count, char* dst)>;
  // `slot` "" for the parameter itself.
  absl::Status Load(int tensor, const std::string& slot, const Read& read);

  absl::Status Seal();

 private:
  Fence FenceOf(int ps_task) const;
  absl::Time Deadline() const;

  const Clock* const clock_;
  const absl::Span<ParameterLink* const> shards_;
  const Sender sender_;
  const PlacedModel* const model_;
  const LoadModel epoch_;
};

}  // namespace muster

#endif  // WORKER_MODEL_UPLOAD_H_
