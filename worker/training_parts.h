// What a TrainingSpec is made into, by the tasks that train and by the one that
// evaluates.
#ifndef WORKER_TRAINING_PARTS_H_
#define WORKER_TRAINING_PARTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/input/data_set.h"
#include "worker/model/compiled_model.h"
#include "worker/tower/step_shape.h"
#include "worker/tower/tower_group.h"

namespace muster {

// What the backends of a process have in common: what the training says of
// computing, and what the flags say of GPUs.
BackendOptions MakeBackendOptions(const TrainingSpec& training,
                                  const GpuOptions& gpu, int compute_threads);

// The backend of a device of ChooseDevices. Errors: those of CreateBackend;
// InvalidArgument naming --device for one that does not train.
absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    BackendOptions options);

// What one tower needs.
struct TowerParts {
  std::string device;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CompiledModel> model;
};

// One tower on each device (of ChooseDevices), with the parameters of the first
// for all; the compute threads of `options` are divided among them. `say` is
// CompileOptions::say. Errors: those of OpenDevice and CompiledModel::Create.
absl::StatusOr<std::vector<TowerParts>> OpenTowers(
    const TrainingSpec& training, const std::vector<std::string>& devices,
    const StepShape& shape, const BackendOptions& options,
    const std::function<void(const std::string&)>& say);

// The towers as one; `towers` outlive the group. `gpu` as for ChooseDevices.
// Errors: InvalidArgument if tower.controller_device is the device of none of
// them.
absl::StatusOr<std::unique_ptr<TowerGroup>> JoinTowers(
    const TrainingSpec& training, absl::Span<const TowerParts> towers,
    const GpuOptions& gpu);

// The model as it evaluates. Errors: those of CompiledModel::Create.
absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, Backend* backend);

// The data set as `model` reads it. Errors: those of CreateDataSet;
// InvalidArgument if it has more classes than the model.
absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split);

}  // namespace muster

#endif  // WORKER_TRAINING_PARTS_H_
