// What a TrainingSpec is made into, by the tasks that train and by the one that
// evaluates.
#ifndef WORKER_TRAINING_PARTS_H_
#define WORKER_TRAINING_PARTS_H_

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

// The backend of a device ("cpu:1"), of a backend's first device ("cpu"), or,
// for "auto", of the best that there is. Errors: InvalidArgument naming
// --device for one that there is not, or that does not train.
absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    int compute_threads);

// What one tower needs.
struct TowerParts {
  std::string device;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CompiledModel> model;
};

// One tower on each device (of ChooseDevices), with the parameters of the first
// for all; the compute threads are divided among them. Errors: those of
// OpenDevice and CompiledModel::Create.
absl::StatusOr<std::vector<TowerParts>> OpenTowers(
    const TrainingSpec& training, const std::vector<std::string>& devices,
    const StepShape& shape, int compute_threads);

// The towers as one; `towers` outlive the group. Errors: InvalidArgument if
// tower.controller_device is the device of none of them.
absl::StatusOr<std::unique_ptr<TowerGroup>> JoinTowers(
    const TrainingSpec& training, absl::Span<const TowerParts> towers);

// The model as it evaluates. Errors: those of CompiledModel::Create.
absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, Backend* backend);

// The data set as `model` reads it. Errors: those of CreateDataSet;
// InvalidArgument if it has more classes than the model.
absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split);

}  // namespace muster

#endif  // WORKER_TRAINING_PARTS_H_
