#ifndef WORKER_MODEL_SNAPSHOT_H_
#define WORKER_MODEL_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/rpc/parameter_link.h"
#include "worker/model_upload.h"
#include "worker/session_messages.h"

namespace muster {

// The values of all shards at one instant each, read while the training goes
// on. The destructor ends it on the shards. One thread at a time.
class ModelSnapshot {
 public:
  // Fixes the values now. All pointers outlive the snapshot; `epoch` says the
  // fences. Errors: those of ParameterLink.
  static absl::StatusOr<std::unique_ptr<ModelSnapshot>> Begin(
      const Clock* clock, absl::Span<ParameterLink* const> shards,
      const Sender& sender, const PlacedModel* model, const EnterEpoch& epoch);
  ~ModelSnapshot();

  // By ps task: version and marks.
  absl::Span<const BeginSnapshotReply> cuts() const { return cuts_; }

  // Gives the tensor's bytes, or its slot's, to `write` in order.
  using Write = std::function<absl::Status(const absl::Cord& bytes)>;
  absl::Status Read(int tensor, const std::string& slot,
                    const Write& write) const;

 private:
  ModelSnapshot(const Clock* clock, absl::Span<ParameterLink* const> shards,
                const Sender& sender, const PlacedModel* model,
                const EnterEpoch& epoch);
  Fence FenceOf(int ps_task) const;

  const Clock* const clock_;
  const absl::Span<ParameterLink* const> shards_;
  const Sender sender_;
  const PlacedModel* const model_;
  const EnterEpoch epoch_;
  // One for each shard on which it was begun.
  std::vector<BeginSnapshotReply> cuts_;
};

}  // namespace muster

#endif  // WORKER_MODEL_SNAPSHOT_H_
