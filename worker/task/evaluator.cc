#include "worker/task/evaluator.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "worker/client/call_status.h"
#include "worker/input/fill_batch.h"

namespace muster {

namespace {

MetricModel DescribedForMetrics(const CompiledModel& model) {
  return {model.num_outputs(), model.loss()};
}

MetricRows RowsOf(const Batch& batch, const CompiledModel& model) {
  MetricRows rows;
  rows.outputs = model.outputs();
  rows.num_outputs = model.num_outputs();
  if (model.loss().reads_targets) {
    rows.targets = batch.targets();
  } else {
    rows.labels = batch.labels();
  }
  return rows;
}

// There was no row to evaluate, but `bad` ones.
absl::Status NoRowsError(const DataSet& data_set, bool bad) {
  return absl::InvalidArgumentError(absl::StrCat(
      "evaluation: ", bad ? "all rows of the " : "the ",
      HalfName(data_set.half()), bad ? " half are bad" : " half is empty"));
}

}  // namespace

absl::Status CheckEvaluation(const TrainingSpec& training,
                             const CompiledModel& model) {
  const EvaluationSpec& spec = training.evaluation();
  RETURN_IF_ERROR(MetricSet::Create(spec, DescribedForMetrics(model)).status());
  const auto is_accuracy = [](const auto& metric) {
    return metric.type() == "accuracy";
  };
  const bool has_accuracy =
      spec.metric().empty()
          ? absl::c_linear_search(model.loss().metrics, "accuracy")
          : absl::c_any_of(spec.metric(), is_accuracy);
  if (has_accuracy || training.stop().target_accuracy() == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "stop.target_accuracy wants the metric accuracy, which this evaluation "
      "does not have: add evaluation { metric { type: \"accuracy\" } } if the "
      "model has classes, or leave stop.target_accuracy out");
}

Split WatchedHalf(const InputSpec& input) {
  return input.validation_fraction() > 0 ? Split::kValidation : Split::kTest;
}

std::string DescribeNoEvaluation(const TrainingSpec& training) {
  const bool validates = WatchedHalf(training.input()) == Split::kValidation;
  return absl::StrCat("'", training.input().dir(),
                      "' has no files of a test half: ",
                      validates ? "the validation half alone" : "nothing",
                      " is evaluated (--set=input.test_fraction=0.1 keeps a "
                      "part of the rows for it)");
}

absl::Status CheckNoEvaluation(const TrainingSpec& training) {
  if (WatchedHalf(training.input()) == Split::kValidation) {
    return absl::OkStatus();
  }
  std::string goal;
  if (training.stop().target_accuracy() > 0) {
    goal = absl::StrCat("stop.target_accuracy is ",
                        training.stop().target_accuracy());
  } else if (training.stop().has_plateau()) {
    goal = absl::StrCat("stop.plateau.metric is ",
                        training.stop().plateau().metric());
  } else if (training.optimizer().schedule().name() == "on_plateau") {
    goal = absl::StrCat("optimizer.schedule.metric is ",
                        training.optimizer().schedule().metric());
  } else if (training.evaluation().every_steps() > 0) {
    goal = absl::StrCat("evaluation.every_steps is ",
                        training.evaluation().every_steps());
  } else {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      goal, ", but '", training.input().dir(),
      "' has no files of a test half: leave it out "
      "(--set=evaluation.every_steps=0), or keep a part of the rows as test "
      "half (--set=input.test_fraction=0.1) or as validation half "
      "(--set=input.validation_fraction=0.1)"));
}

absl::StatusOr<EvaluationSums> EvaluationSums::Create(
    const EvaluationSpec& spec, const CompiledModel& model,
    std::vector<std::string> class_names) {
  MetricModel described = DescribedForMetrics(model);
  described.class_names = std::move(class_names);
  ASSIGN_OR_RETURN(MetricSet metrics, MetricSet::Create(spec, described));
  return EvaluationSums(std::move(metrics));
}

void EvaluationSums::Add(const Batch& batch, const CompiledModel& model,
                         double loss) {
  examples_ += batch.rows;
  const MetricRows rows = RowsOf(batch, model);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    non_finite_ += rows.HasAnswer(row) ? 0 : 1;
  }
  metrics_.Add(rows);
  const double weight =
      model.is_weighted() ? batch.weight : static_cast<double>(batch.rows);
  loss_sum_ += loss * weight;
  weight_ += weight;
}

EvaluationResult EvaluationSums::Finish() const {
  EvaluationResult result;
  result.examples = examples_;
  result.non_finite = non_finite_;
  result.loss = weight_ > 0 ? loss_sum_ / weight_ : std::nan("");
  result.metrics = metrics_.Finish();
  if (weight_ == 0) {
    result.metrics.remarks.push_back("loss is of rows that together weigh 0");
  }
  return result;
}

absl::StatusOr<EvaluationResult> EvaluateModel(
    const EvaluationSpec& spec, const DataSet& data_set, CompiledModel* model,
    Batch& batch, absl::FunctionRef<bool()> go_on, BadRecords* bad_records,
    const ProgressOutput& output) {
  ASSIGN_OR_RETURN(EvaluationSums sums,
                   EvaluationSums::Create(spec, *model, data_set.ClassNames()));
  const int64_t bad_before = bad_records == nullptr ? 0 : bad_records->count();
  WorkProgress progress(output);
  progress.Begin({"evaluation", data_set.num_examples()});
  int64_t next = 0;
  while (true) {
    if (!go_on()) return StoppedError("evaluation");
    const int64_t first = next;
    ASSIGN_OR_RETURN(
        next, OfFile(FillBatchInOrder(data_set, first, bad_records, batch)));
    if (batch.rows == 0) break;
    ASSIGN_OR_RETURN(const CompiledModel::StepResult step,
                     model->Evaluate(batch));
    sums.Add(batch, *model, step.loss);
    progress.Add(next - first);
  }
  if (sums.examples() == 0) return NoRowsError(data_set, /*bad=*/next > 0);
  if (bad_records != nullptr) {
    bad_records->SayLeftOut(bad_before, sums.examples());
  }
  EvaluationResult result = sums.Finish();
  result.half = std::string(HalfName(data_set.half()));
  return result;
}

Evaluator::Evaluator(const EvaluationSpec& spec, const DataSet* data_set,
                     CompiledModel* model, ParameterClient* client,
                     RoundPauser* rounds, BadRecords* bad_records,
                     ProgressOutput output)
    : spec_(spec),
      data_set_(data_set),
      model_(model),
      client_(client),
      rounds_(rounds),
      bad_records_(bad_records),
      output_(std::move(output)),
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

absl::StatusOr<EvaluationResult> Evaluator::Evaluate(
    absl::FunctionRef<bool()> go_on) {
  return Evaluate([this](auto) { return Pull(); }, go_on);
}

absl::StatusOr<EvaluationResult> Evaluator::Evaluate(
    Read read, absl::FunctionRef<bool()> go_on) {
  RETURN_IF_ERROR(read(into_));
  return EvaluateModel(spec_, *data_set_, model_, batch_, go_on, bad_records_,
                       output_);
}

}  // namespace muster
