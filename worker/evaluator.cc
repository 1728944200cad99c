#include "worker/evaluator.h"

#include "common/base/status_macros.h"
#include "worker/input/fill_batch.h"

namespace muster {

Evaluator::Evaluator(const DataSet* data_set, CompiledModel* model,
                     ParameterClient* client)
    : data_set_(data_set),
      model_(model),
      client_(client),
      batch_(MakeBatch(*data_set, model->batch_size())) {
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    into_.push_back(MutableViewOf(model->parameter(static_cast<int>(i))));
  }
}

absl::StatusOr<EvaluationResult> Evaluator::Evaluate() {
  RETURN_IF_ERROR(client_->PullAndWait(into_));
  EvaluationResult result;
  int64_t correct = 0;
  double loss_sum = 0;
  while (true) {
    FillBatchInOrder(*data_set_, result.examples, batch_);
    if (batch_.rows == 0) break;
    ASSIGN_OR_RETURN(const CompiledModel::StepResult step,
                     model_->Evaluate(batch_));
    result.examples += batch_.rows;
    correct += step.correct;
    loss_sum += step.loss * static_cast<double>(batch_.rows);
  }
  if (result.examples == 0) {
    return absl::InvalidArgumentError("evaluation: the test set is empty");
  }
  result.accuracy = static_cast<double>(correct) / result.examples;
  result.loss = loss_sum / result.examples;
  return result;
}

}  // namespace muster
