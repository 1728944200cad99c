#ifndef WORKER_TRAINING_PLACE_MODEL_H_
#define WORKER_TRAINING_PLACE_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/training/placed_model.h"

namespace muster {

// Places the model's parameters; its tables are everywhere. Errors: those of
// PlaceTensors; InvalidArgument if log_tensors names none of them, or a table
// has a tensor's name.
absl::StatusOr<PlacedModel> PlaceModel(const TrainingSpec& training,
                                       absl::Span<const TensorDef> tensors,
                                       int num_ps,
                                       absl::Span<const TableDef> tables = {});

}  // namespace muster

#endif  // WORKER_TRAINING_PLACE_MODEL_H_
