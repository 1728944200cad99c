// The parts that a TrainingSpec is made into, by the tasks that train and by
// the one that evaluates.
#ifndef WORKER_TRAINING_TRAINING_PARTS_H_
#define WORKER_TRAINING_TRAINING_PARTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/base/work_progress.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/backend/device_mean.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/stream/example_stream.h"
#include "worker/tower/batch_plan.h"
#include "worker/tower/tower_group.h"
#include "worker/training/replica_devices.h"

namespace muster {

// The options that the backends of a process have in common: what the training
// says of computing, and what the flags say of GPUs.
BackendOptions MakeBackendOptions(const TrainingSpec& training,
                                  const GpuOptions& gpu, int compute_threads);

// One tower's own parts.
struct TowerParts {
  ReplicaDevices devices;
  std::unique_ptr<CompiledModel> model;
};

// The towers of one worker.
struct OpenedTowers {
  std::vector<TowerParts> towers;
  // TowerGroup::Options::controller: that of tower.controller_device.
  int controller = 0;
  // The mean made where the gradients are; null: the host makes it.
  std::unique_ptr<DeviceMean> mean;
};

// How to open a worker's towers.
struct TowerSetup {
  // Of ChooseDevices: one tower on each, whose own it is.
  std::vector<std::string> devices;
  // Of all towers, each of which opens the named devices for itself.
  LayerPlacement layers;
  BatchPlan shape;
  // The compute threads are divided among the towers.
  BackendOptions backend;
  // CompileOptions::reporter.
  Reporter reporter;
};

// The towers, with the parameters of the first for all. Errors: those of
// OpenReplica, Backend::CreateMean and CompiledModel::Create; InvalidArgument
// if tower.controller_device is not there, or is the device of none of them and
// has memory of its own.
absl::StatusOr<OpenedTowers> OpenTowers(const TrainingSpec& training,
                                        const TowerSetup& setup);

// The towers as one; `opened` outlives the group.
std::unique_ptr<TowerGroup> JoinTowers(const TrainingSpec& training,
                                       const OpenedTowers& opened);

// The host's memory that their models hold.
int64_t MemoryBytes(const OpenedTowers& opened);

// The model as it evaluates on `devices`, beside others that hold
// `taken_bytes`. Errors: those of CompiledModel::Create.
absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, const ReplicaDevices& devices,
    int64_t taken_bytes);

// Whether rows have weights in the loss: class_weight, input.weight_column.
bool HasWeights(const TrainingSpec& training);

// The labels that a loss reads.
LabelKind LabelsOf(const LossType& loss);

// The data set as `model` reads it, with the labels of its loss, or of `kind`.
// Errors: those of CreateDataSet and of CheckOutputs (RunKind::kKnown);
// InvalidArgument (class_weight for a loss without classes). `run` and
// `output`: as CreateDataSet's.
absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split,
    std::shared_ptr<const DataSchema> run = nullptr,
    const ProgressOutput& output = {});
absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split,
    LabelKind kind, std::shared_ptr<const DataSchema> run = nullptr,
    const ProgressOutput& output = {});

// The training half as a stream that `model` reads (input.stream), opened once
// to see that it can. Errors: those of CreateStream.
absl::StatusOr<OpenStream> OpenTrainingStream(
    const TrainingSpec& training, const CompiledModel& model,
    std::shared_ptr<const DataSchema> run = nullptr);

}  // namespace muster

#endif  // WORKER_TRAINING_TRAINING_PARTS_H_
