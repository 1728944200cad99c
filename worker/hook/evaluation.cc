#include "worker/hook/evaluation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/readable_number.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "worker/client/call_status.h"
#include "worker/metric/class_table.h"

namespace muster {

std::optional<double> EvaluationResult::Find(absl::string_view figure) const {
  if (!absl::ConsumePrefix(&figure, half) ||
      !absl::ConsumePrefix(&figure, "_")) {
    return std::nullopt;
  }
  if (figure == "loss") return loss;
  return metrics.Find(figure);
}

std::string EvaluationResult::NameOf(absl::string_view figure) const {
  return absl::StrCat(half, "_", figure);
}

std::vector<MetricResult::Value> EvaluationResult::NamedValues() const {
  std::vector<MetricResult::Value> values;
  for (const MetricResult::Value& value : metrics.values) {
    values.push_back({NameOf(value.name), value.value});
  }
  values.push_back({NameOf("loss"), loss});
  return values;
}

std::string DescribeEvaluation(const EvaluationResult& result) {
  std::vector<std::string> words;
  for (const MetricResult::Value& value : result.NamedValues()) {
    words.push_back(
        absl::StrFormat("%s=%.4f", value.name, WithoutNanSign(value.value)));
  }
  if (result.non_finite > 0) {
    words.push_back(
        absl::StrCat(result.NameOf("non_finite_rows"), "=", result.non_finite));
  }
  return absl::StrJoin(words, " ");
}

void ReportClasses(const EvaluationResult& result, const Reporter& reporter) {
  if (result.metrics.by_class.empty()) return;
  reporter.Info(absl::StrCat(result.NameOf("by_class"), ":"));
  for (const std::string& line : ClassTableLines(result.metrics.by_class)) {
    reporter.Info(line);
  }
}

void ReportRemarks(const EvaluationResult& result, const Reporter& reporter) {
  for (const std::string& remark : result.metrics.remarks) {
    reporter.Info(result.NameOf(remark));
  }
}

absl::Status CheckHasAnswers(const EvaluationResult& result) {
  if (result.examples == 0 || result.non_finite < result.examples) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(
      "the outputs of all ", result.examples,
      " rows are NaN or infinite: the model is ruined (or the rows are); a "
      "smaller learning rate often helps, non_finite.allow goes on with it"));
}

Evaluation::Evaluation(int64_t every_steps, Evaluate evaluate,
                       Reporter reporter, RequestStop stop_job)
    : evaluate_(std::move(evaluate)),
      reporter_(std::move(reporter)),
      stop_job_(std::move(stop_job)),
      period_(every_steps) {}

absl::Status Evaluation::AfterEnter(const EpochRecord& epoch) {
  period_.Start(counted_ == nullptr ? epoch.global_step : counted_());
  return absl::OkStatus();
}

absl::Status Evaluation::AfterWait(int64_t global_step) {
  RunIfDue(global_step);
  return absl::OkStatus();
}

absl::Status Evaluation::AfterStep(const StepRecord& step) {
  RunIfDue(step.global_step);
  return absl::OkStatus();
}

void Evaluation::RunIfDue(int64_t global_step) {
  if (!period_.IsOver(global_step)) return;
  period_.Start(global_step);
  results_.clear();
  const absl::Status status = Run(global_step, evaluate_);
  if (status.ok()) return;
  // Made up for after the next step.
  const bool may_succeed = IsTransient(status) || IsStopped(status);
  if (counted_ != nullptr && may_succeed) period_.Start(counted_());
  reporter_.Info(absl::StrCat("no evaluation at step ", global_step, ": ",
                              status.message()));
}

absl::Status Evaluation::AtEnd(const EndRecord& end) {
  if (!end.completed) return absl::OkStatus();
  // One from the middle of the training is not that of its end.
  results_.clear();
  const absl::Status status = RunAtEnd(end.global_step);
  if (!status.ok()) results_.clear();
  if (IsStopped(status)) {
    reporter_.Info(
        "no evaluation at the end, and no result.json: stopped; started again, "
        "the run evaluates");
  }
  for (const EvaluationResult& result : results_) {
    ReportClasses(result, reporter_);
  }
  return status;
}

absl::Status Evaluation::RunAtEnd(int64_t global_step) {
  RETURN_IF_ERROR(Run(global_step, evaluate_));
  return evaluate_at_end_ == nullptr ? absl::OkStatus()
                                     : Run(global_step, evaluate_at_end_);
}

absl::Status Evaluation::Run(int64_t global_step, const Evaluate& evaluate) {
  ASSIGN_OR_RETURN(EvaluationResult evaluated, evaluate());
  results_.push_back(std::move(evaluated));
  const EvaluationResult& result = results_.back();
  if (result.global_step.has_value()) {
    global_step = *result.global_step;
    // Others may have pushed for long, until no save was written.
    period_.Start(global_step);
  }
  reporter_.Info(
      absl::StrCat("step=", global_step, " ", DescribeEvaluation(result)));
  ReportRemarks(result, reporter_);
  for (const Listener& listener : listeners_) listener(global_step, result);
  const absl::Status answers = CheckHasAnswers(result);
  if (!answers.ok() && stop_job_ != nullptr) stop_job_("non_finite", answers);
  return absl::OkStatus();
}

}  // namespace muster
