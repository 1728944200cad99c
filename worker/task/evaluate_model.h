#ifndef WORKER_TASK_EVALUATE_MODEL_H_
#define WORKER_TASK_EVALUATE_MODEL_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/executor/compiled_model.h"
#include "worker/hook/evaluation.h"
#include "worker/input/batch.h"
#include "worker/input/data_set.h"

namespace muster {

// Goes through `data_set` in order with the parameters that `model` (in
// evaluate mode) has. `batch` is room for its batches. Errors: InvalidArgument
// for an empty data set; Cancelled once `go_on`, asked before each batch, says
// no; the model's.
absl::StatusOr<EvaluationResult> EvaluateModel(const DataSet& data_set,
                                               CompiledModel* model,
                                               Batch& batch,
                                               absl::FunctionRef<bool()> go_on);

}  // namespace muster

#endif  // WORKER_TASK_EVALUATE_MODEL_H_
