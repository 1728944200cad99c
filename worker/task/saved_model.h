#ifndef WORKER_TASK_SAVED_MODEL_H_
#define WORKER_TASK_SAVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "common/checkpoint/checkpoint_choice.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "proto/training.pb.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/executor/compiled_model.h"
#include "worker/tower/device_names.h"
#include "worker/training/replica_devices.h"

namespace muster {

// A training's model on the devices of one replica, to be used with parameters
// from files. One thread.
class SavedModel {
 public:
  struct Options {
    // Checked.
    TrainingSpec training;
    // The choice of one device, the replica's own.
    DeviceChoice device_choice;
    bool log_device_placement = false;
    int compute_threads = 1;
    // The host's memory that other models hold.
    int64_t taken_bytes = 0;
    Reporter reporter;
  };

  // Errors: those of ChooseDevices, PlaceLayers, OpenReplica and
  // CompileTestModel.
  static absl::StatusOr<std::unique_ptr<SavedModel>> Create(
      const Options& options);

  // Reads the checkpoint's parameters. Errors: FailedPrecondition if it is of
  // another model; the file's.
  absl::Status LoadCheckpoint(const CheckpointReader& reader);

  // Those of the file, if there is one, else those of the `choice` among the
  // whole checkpoints of `train_dir`. Returns the path. Errors: InvalidArgument
  // if neither or both are named, or another choice than the newest of a file;
  // InitialWeights'; FailedPrecondition for a train_dir without a checkpoint
  // that can be used.
  absl::StatusOr<std::string> Load(FileSystem* file_system,
                                   const std::string& train_dir,
                                   const CheckpointChoice& choice,
                                   const InitialWeights::Options& weights);

  std::string device() const { return devices_.Title(); }
  // In evaluate mode.
  CompiledModel* model() { return model_.get(); }

 private:
  explicit SavedModel(const Options& options) : options_(options) {}

  absl::Status CreateModel();
  // Returns the path.
  absl::StatusOr<std::string> LoadWeights(FileSystem* file_system,
                                          InitialWeights::Options options);

  const Options options_;
  ReplicaDevices devices_;
  std::unique_ptr<CompiledModel> model_;
};

}  // namespace muster

#endif  // WORKER_TASK_SAVED_MODEL_H_
