// What a TrainingSpec is made into, by the tasks that train and by the one that
// evaluates.
#ifndef WORKER_TRAINING_PARTS_H_
#define WORKER_TRAINING_PARTS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/input/data_set.h"
#include "worker/model/compiled_model.h"

namespace muster {

// Opens a registered backend, or, for "auto", the best that there is. Errors:
// InvalidArgument naming --device for one that does not train, or is meant to
// work one day; those of CreateBackend.
absl::StatusOr<std::unique_ptr<Backend>> OpenDevice(const std::string& device,
                                                    int compute_threads);

// The model as it evaluates. Errors: those of CompiledModel::Create.
absl::StatusOr<std::unique_ptr<CompiledModel>> CompileTestModel(
    const TrainingSpec& training, Backend* backend);

// The data set as `model` reads it. Errors: those of CreateDataSet;
// InvalidArgument if it has more classes than the model.
absl::StatusOr<std::unique_ptr<DataSet>> OpenDataSet(
    const TrainingSpec& training, const CompiledModel& model, Split split);

}  // namespace muster

#endif  // WORKER_TRAINING_PARTS_H_
