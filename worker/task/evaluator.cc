#include "worker/task/evaluator.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/input/fill_batch.h"
#include "worker/task/evaluate_model.h"

namespace muster {

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
