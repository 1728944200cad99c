#include "worker/task/worker_data.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/write_watch.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/say_remarks.h"
#include "worker/task/evaluator.h"
#include "worker/task/kept_training.h"
#include "worker/task/run_data.h"
#include "worker/training/class_outputs.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

// The reporter of what one task alone says for all.
Reporter ChiefReporter(const WorkerJob& job) {
  return job.is_chief() ? job.options.reporter : Reporter();
}

// The run that goes on; its schema is null if it is new, or does not say.
absl::StatusOr<RunSchema> FindSchema(const WorkerJob& job) {
  const WorkerOptions& options = job.options;
  ASSIGN_OR_RETURN(RunSchema run,
                   FindRunSchema(options.train_dir, ChiefReporter(job)));
  if (job.is_chief() && !options.train_dir.empty()) {
    RETURN_IF_ERROR(CheckCanKeepTraining(options.train_dir));
  }
  // Without a checkpoint a training begins anew.
  if (!run.has_checkpoint) run.schema = nullptr;
  if (run.schema != nullptr) {
    RETURN_IF_ERROR(CheckRunTraining(*run.schema, options.training));
  }
  return run;
}

// Warns of what --init_from was trained to read, where it is not `now`.
void WarnOfOtherSource(const WorkerOptions& options, const DataSchema& now) {
  if (options.init.path.empty()) return;
  const absl::StatusOr<RunSchema> source =
      FindRunSchema(RunFolder(/*train_dir=*/"", options.init.path), Reporter());
  if (!source.ok() || source->schema == nullptr) return;
  const bool leaves_out = absl::c_any_of(
      options.init.name_map,
      [](const std::string& rule) { return absl::EndsWith(rule, "="); });
  for (const std::string& line :
       DescribeOtherSource(*source->schema, now, leaves_out)) {
    options.reporter.Warning(line);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerData>> WorkerData::Create(
    const WorkerJob& job, const WorkerTowers& towers) {
  auto data = absl::WrapUnique(new WorkerData());
  WriteWatch::Options watch;
  watch.clock = job.options.clock;
  watch.reporter = job.options.reporter;
  RETURN_IF_ERROR(WriteWatch(watch).WatchRead(
      "opening of the data", [&] { return data->Open(job, towers.model()); }));
  return data;
}

absl::Status WorkerData::Open(const WorkerJob& job,
                              const CompiledModel& model) {
  const WorkerOptions& options = job.options;
  ASSIGN_OR_RETURN(const RunSchema of_run, FindSchema(job));
  ASSIGN_OR_RETURN(DataSchema now, OpenHalves(job, model, of_run));
  if (job.is_chief() && !of_run.has_checkpoint) WarnOfOtherSource(options, now);
  ASSIGN_OR_RETURN(schema_, SettleSchema(of_run.schema.get(), std::move(now),
                                         ChiefReporter(job)));
  return absl::OkStatus();
}

absl::StatusOr<DataSchema> WorkerData::OpenHalves(const WorkerJob& job,
                                                  const CompiledModel& model,
                                                  const RunSchema& of_run) {
  const TrainingSpec& training = job.options.training;
  const std::shared_ptr<const DataSchema>& run = of_run.schema;
  ASSIGN_OR_RETURN(DataSchema half, OpenTrainingHalf(job.options, model, run));
  // Others are told by ps task 0 where their data are not the chief's.
  if (job.is_chief() && !of_run.has_checkpoint && training_set_ != nullptr) {
    RETURN_IF_ERROR(CheckOutputs(training, *training_set_, model.num_outputs(),
                                 RunKind::kNew));
  }
  if (training.input().on_bad_record() == SKIP) {
    bad_records_ = std::make_unique<BadRecords>(job.options.reporter);
  }
  const auto seed = static_cast<uint64_t>(training.seed());
  DataSchema now = CompleteSchema(training.input(), seed, std::move(half));
  if (!job.is_chief()) return now;
  RETURN_IF_ERROR(OpenEvaluatedHalves(
      job.options, model,
      run != nullptr ? run : std::make_shared<const DataSchema>(now)));
  if (validation_set_ != nullptr) {
    *now.mutable_validation() = validation_set_->Schema().validation();
  }
  if (test_set_ != nullptr) *now.mutable_test() = test_set_->Schema().test();
  return now;
}

absl::Status WorkerData::OpenEvaluatedHalves(
    const WorkerOptions& options, const CompiledModel& model,
    const std::shared_ptr<const DataSchema>& run) {
  const TrainingSpec& training = options.training;
  RETURN_IF_ERROR(CheckEvaluation(training, model));
  const LabelKind labels = LabelsOf(model.loss());
  if (WatchedHalf(training.input()) == Split::kValidation) {
    ASSIGN_OR_RETURN(validation_set_,
                     OpenHalf(training, model, {Split::kValidation, labels},
                              run, ProgressOutputOf(options)));
  }
  ASSIGN_OR_RETURN(const bool has_test_half, HasTestHalf(training.input()));
  if (!has_test_half) {
    options.reporter.Info(DescribeNoEvaluation(training));
    return CheckNoEvaluation(training);
  }
  ASSIGN_OR_RETURN(test_set_, OpenHalf(training, model, {Split::kTest, labels},
                                       run, ProgressOutputOf(options)));
  return absl::OkStatus();
}

absl::StatusOr<DataSchema> WorkerData::OpenTrainingHalf(
    const WorkerOptions& options, const CompiledModel& model,
    const std::shared_ptr<const DataSchema>& run) {
  const TrainingSpec& training = options.training;
  if (training.input().stream()) {
    ASSIGN_OR_RETURN(open_stream_, OpenTrainingStream(training, model, run));
    ASSIGN_OR_RETURN(const std::unique_ptr<ExampleStream> stream,
                     open_stream_());
    ReportTrainingHalf(options, stream->Files(), stream->Remarks());
    return stream->Schema();
  }
  ASSIGN_OR_RETURN(training_set_, OpenDataSet(training, model, Split::kTrain,
                                              run, ProgressOutputOf(options)));
  ReportTrainingHalf(options, training_set_->Files(), training_set_->Remarks());
  return training_set_->Schema();
}

void WorkerData::ReportTrainingHalf(
    const WorkerOptions& options, const std::vector<std::string>& files,
    const std::vector<std::string>& remarks) const {
  std::string line = "training data: ";
  if (training_set_ == nullptr) {
    absl::StrAppend(&line, "a stream of rows");
  } else {
    absl::StrAppend(&line, training_set_->num_examples(), " rows");
    if (training_set_->num_targets() > 0) {
      absl::StrAppend(&line, " with ", training_set_->num_targets(),
                      " targets");
    } else {
      absl::StrAppend(&line, " in ", training_set_->num_classes(), " classes");
    }
  }
  if (!files.empty()) {
    absl::StrAppend(&line, ", ", files.size(), " files in ",
                    options.training.input().dir());
  }
  options.reporter.Info(line);
  SayRemarks("training data", remarks, options.reporter);
}

int64_t WorkerData::num_examples() const {
  return training_set_ == nullptr ? 0 : training_set_->num_examples();
}

}  // namespace muster
