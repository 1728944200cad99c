#ifndef WORKER_MODEL_SAVER_H_
#define WORKER_MODEL_SAVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/file_system.h"
#include "common/rpc/coordination_link.h"
#include "proto/checkpoint.pb.h"
#include "worker/client/parameter_client.h"
#include "worker/hook/checkpoint_saver.h"
#include "worker/placed_model.h"

namespace muster {

// Writes the shards' model into train_dir. Begin and Enter are for the training
// thread; the save that Begin returns may run on another.
class ModelSaver {
 public:
  // All pointers outlive the saver and its saves.
  struct Options {
    const Clock* clock = nullptr;
    FileSystem* file_system = nullptr;
    // Exists and is locked by this process.
    std::string train_dir;
    ParameterClient* client = nullptr;
    CoordinationLink* coordination = nullptr;
    Sender sender;
    const PlacedModel* placed = nullptr;
    // Of each trainable parameter, without "t".
    std::vector<std::string> slots;
    int64_t seed = 0;
    // Checkpoints to keep.
    int keep = 5;
    std::function<void(absl::string_view)> say;
  };

  explicit ModelSaver(Options options);

  // The epoch that saves are of from here on.
  void Enter(int64_t model_epoch) { model_epoch_ = model_epoch; }

  // Fixes the shards' values and the job's counts now.
  absl::StatusOr<PendingSave> Begin();

 private:
  using Cuts = std::vector<BeginSnapshotReply>;

  absl::StatusOr<std::string> Write(const Cuts& cuts,
                                    CheckpointManifest manifest) const;
  absl::StatusOr<std::string> WriteFiles(const Cuts& cuts,
                                         CheckpointManifest manifest) const;
  absl::Status CopyPiece(const Cuts& cuts, const CheckpointPiece& piece,
                         CheckpointWriter* writer) const;

  const Options options_;
  int64_t model_epoch_ = 0;
};

}  // namespace muster

#endif  // WORKER_MODEL_SAVER_H_
