#include "worker/task/evaluator.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/client/call_status.h"
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
    RETURN_IF_ERROR(OfFile(FillBatchInOrder(data_set, result.examples, batch)));
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

Evaluator::Evaluator(const DataSet* data_set, CompiledModel* model,
                     ParameterClient* client, RoundPauser* rounds)
    : data_set_(data_set),
      model_(model),
      client_(client),
      rounds_(rounds),
      batch_(MakeBatch(*data_set, model->batch_size())) {
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    into_.push_back(MutableViewOf(model->parameter(static_cast<int>(i))));
  }
}

absl::Status Evaluator::Pull() {
  if (rounds_ == nullptr) return client_->PullAndWait(into_);
  return rounds_->RunPaused(
      [this](const StepToken& token, RoundPauser::Done done) {
        client_->PullThen(into_, token, std::move(done));
      });
}

absl::StatusOr<EvaluationResult> Evaluator::Evaluate() {
  RETURN_IF_ERROR(Pull());
  return EvaluateModel(*data_set_, model_, batch_, [] { return true; });
}

}  // namespace muster
