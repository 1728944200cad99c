#ifndef WORKER_CHECKPOINT_MODEL_SAVER_H_
#define WORKER_CHECKPOINT_MODEL_SAVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/retention.h"
#include "common/rpc/link.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordination_service.pb.h"
#include "proto/evaluation_history.pb.h"
#include "worker/checkpoint/restored_rows.h"
#include "worker/client/parameter_client.h"
#include "worker/hook/checkpoint_saver.h"
#include "worker/session/round_pauser.h"
#include "worker/training/placed_model.h"

namespace muster {

// The chief's writer of the shards' model into train_dir. A save that would
// hold a value that is not finite fails with FailedPrecondition naming the
// parameter, unless the definition allows such values; earlier checkpoints
// stay. Begin and Enter are for the training thread; the save that Begin
// returns may run on another.
class ModelSaver {
 public:
  // All pointers outlive the saver and its saves.
  struct Options {
    const Clock* clock = nullptr;
    // For the manifest's stamp only.
    absl::Time (*wall_now)() = &absl::Now;
    FileSystem* file_system = nullptr;
    // Exists and is locked by this process.
    std::string train_dir;
    ParameterClient* client = nullptr;
    Link* coordination = nullptr;
    Sender sender;
    // Null but in synchronous replication, where every shard is then cut after
    // the same update. Entered by the saver.
    RoundPauser* rounds = nullptr;
    // Without rounds: the most steps of a worker that a restore may repeat.
    int pipeline_depth = 1;
    const PlacedModel* placed = nullptr;
    // What the run takes.
    TakenRows rows;
    // The slots of each trainable parameter, without "t".
    std::vector<std::string> slots;
    int64_t seed = 0;
    // The run's data.
    DataSchema schema;
    Retention retention;
    Reporter reporter;
  };

  explicit ModelSaver(Options options);

  // The epoch that saves are of from here on. The run had `trained` for so long
  // by the model that was loaded for it. Without one the count goes on, at
  // first from the newest manifest: the shards held a model.
  void Enter(int64_t model_epoch, std::optional<absl::Duration> trained);

  // Before the first save: what evaluations have found by now, of models that
  // are saved.
  void set_evaluations(std::function<EvaluationHistory()> evaluations) {
    evaluations_ = std::move(evaluations);
  }

  // How long the run has trained at `now`. REQUIRES: Enter was called.
  absl::Duration Trained(absl::Time now) const;

  // Fixes the shards' values and the job's counts now.
  absl::StatusOr<PendingSave> Begin();

 private:
  using Cuts = std::vector<BeginSnapshotReply>;
  // The shards' cuts, and the job's state and rows that go with them.
  struct Moment {
    JobState state;
    Cuts cuts;
    RowLedger ledger;
    // As PendingSave's.
    bool has_unreported = false;
  };

  absl::StatusOr<Moment> Cut();
  // Errors: Aborted: cut again, unless this was the last attempt.
  absl::StatusOr<Moment> CutOnce(bool is_last);
  absl::StatusOr<Moment> CutPausedRounds() const;
  // While steps are applied: the cuts say which of them they hold, and the
  // state counts those that all of them do. At the last attempt no step is
  // granted meanwhile.
  absl::StatusOr<Moment> CutRunningSteps(bool is_last);
  // Aborted if a restore would repeat too many steps; at the last attempt a
  // line.
  absl::Status CheckRepeated(int64_t repeated_steps, bool is_last) const;
  absl::StatusOr<ConfirmCutReply> ConfirmCut(const Cuts& cuts) const;

  CheckpointManifest MakeManifest(const Moment& moment) const;
  // `best`: they were evaluated to be the manifest's best ones.
  absl::StatusOr<std::string> Write(const Cuts& cuts,
                                    const CheckpointManifest& manifest,
                                    bool best) const;
  // Whether the manifest's best model is saved under the manifest's step.
  bool IsBestSaved(const CheckpointManifest& manifest) const;
  absl::StatusOr<std::string> WriteFiles(
      const Cuts& cuts, const CheckpointManifest& manifest) const;
  absl::Status Read(const Cuts& cuts,
                    absl::Span<const MutableTensorView> into) const;
  // Tells ps task 0 that the model of then is saved.
  void Report(const CheckpointManifest& manifest) const;
  absl::Status CopyPiece(const Cuts& cuts, const CheckpointPiece& piece,
                         CheckpointWriter* writer) const;

  const Options options_;
  // Null: nothing is watched.
  std::function<EvaluationHistory()> evaluations_;
  int64_t model_epoch_ = 0;
  int64_t cuts_begun_ = 0;
  // How long the run had trained at start_; nullopt before the first epoch.
  std::optional<absl::Duration> trained_before_;
  absl::Time start_;
};

// The step of the newest checkpoint whose manifest can be read; -1 if there is
// none.
int64_t NewestSavedStep(FileSystem* file_system, const std::string& train_dir);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_MODEL_SAVER_H_
