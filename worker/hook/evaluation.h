#ifndef WORKER_HOOK_EVALUATION_H_
#define WORKER_HOOK_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"
#include "worker/metric/metric_result.h"

namespace muster {

// The outcome of an evaluation over a whole data set.
struct EvaluationResult {
  int64_t examples = 0;
  // Mean over the examples, with penalties.
  double loss = 0;
  MetricResult metrics;
  // Of the examples, those with outputs that are NaN or infinite: never right.
  int64_t non_finite = 0;
  // Whose rows they are, and the first word of its figures' names: "test" or
  // "validation".
  std::string half = "test";
  // The model's, if it was fixed for this; else that of the step before.
  std::optional<int64_t> global_step = std::nullopt;

  // The figure of a name with its half, "validation_loss"; nullopt if this
  // evaluation did not make it.
  std::optional<double> Find(absl::string_view figure) const;
  // A figure's, or table's, name with the half: "test_accuracy".
  std::string NameOf(absl::string_view figure) const;
  // The metrics' values and the loss by these names: the same in result.json,
  // the log and TensorBoard.
  std::vector<MetricResult::Value> NamedValues() const;
};

// "test_accuracy=0.9146 test_loss=0.2410"
std::string DescribeEvaluation(const EvaluationResult& result);

// Reports what is no part of that line: the table of classes.
void ReportClasses(const EvaluationResult& result, const Reporter& reporter);

// Reports what values leave out, and why.
void ReportRemarks(const EvaluationResult& result, const Reporter& reporter);

// OutOfRange if no row has an answer: the model is ruined.
absl::Status CheckHasAnswers(const EvaluationResult& result);

// The hook that evaluates on the validation half, or without one on the test
// half, every so many global steps, and at the end of a training that was
// completed: there on the test half, too. The training of this worker waits
// meanwhile. One in which no row has an answer ends the job as NanGuard does.
class Evaluation : public Hook {
 public:
  // Pulls the parameters and goes through the rows of a half.
  using Evaluate = std::function<absl::StatusOr<EvaluationResult>()>;

  // Gets each result, on the training thread.
  using Listener =
      std::function<void(int64_t global_step, const EvaluationResult&)>;

  // `every_steps` 0: only at the end. `stop_job` null: rows without an answer
  // are allowed.
  Evaluation(int64_t every_steps, Evaluate evaluate, Reporter reporter,
             RequestStop stop_job = nullptr);

  // Before the first step.
  void AddListener(Listener listener) {
    listeners_.push_back(std::move(listener));
  }

  // Before the first step: the step of the run's newest evaluation that is
  // counted. One that was due after it, and is not counted, is made as soon as
  // this worker may take a step; without this call it is left out.
  void SetCounted(std::function<int64_t()> counted) {
    counted_ = std::move(counted);
  }
  // Before the first step: what is evaluated at the end alone, after the other.
  void set_evaluate_at_end(Evaluate evaluate) {
    evaluate_at_end_ = std::move(evaluate);
  }

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterWait(int64_t global_step) override;
  // A shard that is lost meanwhile is no error here: the next step meets it.
  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AtEnd(const EndRecord& end) override;

  // The newest evaluation's, and at the end that of what is evaluated there
  // alone; none if an evaluation of the end failed.
  const std::vector<EvaluationResult>& results() const { return results_; }

 private:
  void RunIfDue(int64_t global_step);
  // Appends to results_.
  absl::Status Run(int64_t global_step, const Evaluate& evaluate);
  absl::Status RunAtEnd(int64_t global_step);

  const Evaluate evaluate_;
  const Reporter reporter_;
  const RequestStop stop_job_;
  std::vector<Listener> listeners_;
  std::function<int64_t()> counted_;
  StepPeriod period_;
  // Null: nothing.
  Evaluate evaluate_at_end_;
  std::vector<EvaluationResult> results_;
};

}  // namespace muster

#endif  // WORKER_HOOK_EVALUATION_H_
