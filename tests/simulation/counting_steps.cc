#include "tests/simulation/counting_steps.h"

#include <cmath>
#include <memory>

#include "common/base/status_macros.h"

namespace muster {

CountingSteps::CountingSteps(const SimProcess* process, Oracle* oracle,
                             const SimModel* model, ParameterClient* client,
                             const Sender& sender)
    : process_(process),
      oracle_(oracle),
      model_(model),
      client_(client),
      sender_(sender),
      random_(sender.incarnation()) {
  for (const TensorDef& tensor : model->placed.tensors) {
    values_.emplace_back(tensor.shape(0));
    gradients_.emplace_back(tensor.shape(0), 0.0f);
    gradients_.back()[sender.task().index()] = -SimModel::kUnit;
  }
}

absl::Status CountingSteps::Enter(const EnterEpoch& epoch) {
  client_->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
  epoch_ = epoch;
  if (epoch.data_position != EnterEpoch::kKeepPosition) {
    position_ = epoch.data_position;
  }
  return absl::OkStatus();
}

absl::StatusOr<StepReport> CountingSteps::Run(int64_t step,
                                              const StepToken& token,
                                              const BeforePush& before_push) {
  std::vector<MutableTensorView> into;
  for (std::vector<float>& value : values_) {
    into.push_back(MutableViewOf(absl::MakeSpan(value)));
  }
  oracle_->StepBegun(sender_.incarnation());
  // As TrainLoop.
  const bool is_async = model_->scenario.mode == Mode::kAsync;
  if (!is_async || !client_->HoldsValues(into)) {
    RETURN_IF_ERROR(client_->PullAndWait(into, token));
  }
  std::vector<TensorView> gradients;
  for (const std::vector<float>& gradient : gradients_) {
    gradients.push_back(ViewOf(absl::MakeConstSpan(gradient)));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<GradualPush> push,
      client_->BeginPush(step, token.round(), gradients,
                         is_async ? absl::MakeConstSpan(into)
                                  : absl::Span<const MutableTensorView>()));
  // The last layers' gradients leave in mid-backward.
  const absl::Duration compute = random_.About(model_->scenario.compute);
  process_->Sleep(compute / 2);
  for (size_t i = gradients.size(); i-- > gradients.size() / 2;) {
    push->Release(static_cast<int>(i));
  }
  process_->Sleep(compute / 2);
  ComputedStep computed;
  computed.examples = 1;
  RETURN_IF_ERROR(before_push(computed).status());
  ASSIGN_OR_RETURN(const PushOutcome outcome, push->Finish());
  if (!outcome.late) {
    oracle_->StepCompleted(sender_, epoch_.model_epoch,
                           epoch_.ps_incarnations[0], step);
  }
  StepReport report;
  report.step = step;
  report.examples = 1;
  report.data_position = ++position_;
  report.round = token.round();
  report.late = outcome.late;
  report.staleness = std::llround(outcome.mean_staleness);
  return report;
}

}  // namespace muster
