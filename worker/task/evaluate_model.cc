#include "worker/task/evaluate_model.h"

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "worker/input/fill_batch.h"

namespace muster {

absl::StatusOr<EvaluationResult> EvaluateModel(
    const DataSet& data_set, CompiledModel* model, Batch& batch,
    absl::FunctionRef<bool()> go_on) {
  EvaluationResult result;
  int64_t correct = 0;
  double loss_sum = 0;
  while (true) {
    if (!go_on()) return absl::CancelledError("evaluation: stopped");
    FillBatchInOrder(data_set, result.examples, batch);
    if (batch.rows == 0) break;
    ASSIGN_OR_RETURN(const CompiledModel::StepResult step,
                     model->Evaluate(batch));
    result.examples += batch.rows;
    correct += step.correct;
    loss_sum += step.loss * static_cast<double>(batch.rows);
  }
  if (result.examples == 0) {
    return absl::InvalidArgumentError("evaluation: the test set is empty");
  }
  result.accuracy = static_cast<double>(correct) / result.examples;
  result.loss = loss_sum / result.examples;
  return result;
}

}  // namespace muster
