#ifndef WORKER_CHECKPOINT_MODEL_LOADER_H_
#define WORKER_CHECKPOINT_MODEL_LOADER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/write_watch.h"
#include "proto/checkpoint.pb.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/checkpoint/namespace_weights.h"
#include "worker/checkpoint/restored_rows.h"
#include "worker/client/parameter_client.h"
#include "worker/session/job_goal.h"
#include "worker/session/step_runner.h"
#include "worker/training/placed_model.h"

namespace muster {

// The chief's way to a model on every shard: the newest whole checkpoint of
// train_dir, or else given weights (a file's or a namespace's), or else initial
// values. One thread.
class ModelLoader : public ModelSource {
 public:
  // All pointers outlive the loader.
  struct Options {
    FileSystem* file_system = nullptr;
    // "" never restores.
    std::string train_dir;
    ParameterClient* client = nullptr;
    const PlacedModel* placed = nullptr;
    // Makes the initial values; returns where they are, one span a tensor.
    std::function<absl::StatusOr<std::vector<absl::Span<float>>>()> make_values;
    // Where those are from, for the operator: "seed 7".
    std::string values_source;
    // Take the place of the initial values that they have; may be null.
    const InitialWeights* weights = nullptr;
    // The same of a namespace.
    NamespaceWeights read_from;
    // Who will take steps, and of which rows.
    std::vector<TaskId> tasks;
    TakenRows rows;
    // What the run wants.
    JobGoal goal;
    // The run's data: if a checkpoint was of other data, that is said.
    DataFiles data;
    Reporter reporter;
    // Says that a checkpoint takes long to read; may be null.
    WriteWatch* watch = nullptr;
  };

  explicit ModelLoader(Options options);

  LoadEvent Load(const LoadModel& epoch) override;
  int64_t SavedEpoch() override;

  // Training begins. Says so if that is with a model that was on the shards
  // before, and not with the given weights. Returns how long the run of the
  // model that was loaded since the last call had trained; nullopt: none was.
  std::optional<absl::Duration> Enter();

 private:
  LoadEvent LoadNow(const LoadModel& epoch);
  // Errors: those of CheckCompatible and CheckTableSlots.
  absl::Status CheckCompatibleModel(const CheckpointManifest& manifest) const;
  // The model of a checkpoint that was found to be usable.
  absl::StatusOr<LoadedModel> Restore(const CheckpointReader& reader,
                                      RestoredRows rows);
  void SayIfDataChanged(const CheckpointManifest& manifest) const;
  // The flag of the given weights; "" if there are none.
  std::string GivenWeights() const;
  LoadEvent Initialize();
  using Values = std::vector<absl::Span<float>>;
  absl::StatusOr<Values> MakeValues() const;
  // Returns the words for what was read; "" without a namespace.
  absl::StatusOr<std::string> ReadNamespace(const Values& values) const;
  absl::StatusOr<LoadedModel> SendValues(const Values& values,
                                         const std::string& read);
  absl::Status RestorePiece(const CheckpointReader& reader,
                            const CheckpointPiece& piece);

  const Options options_;
  // Load was called, or Enter has said that it was not.
  bool settled_ = false;
  // The next result of Enter.
  std::optional<absl::Duration> trained_;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_MODEL_LOADER_H_
