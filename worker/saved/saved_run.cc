#include "worker/saved/saved_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/base/work_progress.h"
#include "common/checkpoint/posix_file_system.h"
#include "worker/client/call_status.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/fill_batch.h"
#include "worker/saved/prediction_file.h"
#include "worker/saved/test_rows.h"
#include "worker/task/class_names_file.h"
#include "worker/task/evaluator.h"
#include "worker/task/result_file.h"
#include "worker/task/run_data.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

bool SkipsBad(const TrainingSpec& training) {
  return training.input().on_bad_record() == SKIP;
}

ProgressOutput OutputOf(const SavedRunOptions& options) {
  return {options.model.reporter, options.show_live, options.clock};
}

absl::Status OfOutput(const absl::Status& status) {
  return OfFile(Annotate(status, "--output"));
}

// Loads the parameters, and says from where.
absl::StatusOr<std::string> LoadInto(const SavedRunOptions& options,
                                     SavedModel* saved) {
  PosixFileSystem file_system;
  ASSIGN_OR_RETURN(const std::string path,
                   saved->Load(&file_system, options.train_dir,
                               options.checkpoint, options.init));
  options.model.reporter.Info(absl::StrCat("using the parameters of ", path));
  return path;
}

void Softmax(absl::Span<float> row) {
  const float largest = *std::max_element(row.begin(), row.end());
  float sum = 0;
  for (float& value : row) sum += value = std::exp(value - largest);
  for (float& value : row) value /= sum;
}

void Sigmoid(absl::Span<float> row) {
  for (float& value : row) value = 1 / (1 + std::exp(-value));
}

// kAuto becomes what fits the model. Errors: InvalidArgument for what it does
// not have.
absl::StatusOr<PredictionValues> ResolveValues(PredictionValues values,
                                               Prediction prediction) {
  if (values == PredictionValues::kAuto) {
    return prediction == Prediction::kIdentity
               ? PredictionValues::kOutputs
               : PredictionValues::kProbabilities;
  }
  if (values == PredictionValues::kClass &&
      prediction != Prediction::kSoftmax) {
    return absl::InvalidArgumentError(
        "--values=class: this model's loss has no classes; use "
        "--values=outputs");
  }
  if (values == PredictionValues::kProbabilities &&
      prediction == Prediction::kIdentity) {
    return absl::InvalidArgumentError(
        "--values=probabilities: this model's outputs are no "
        "probabilities; use --values=outputs");
  }
  return values;
}

// What the run says of its data; null: nothing.
absl::StatusOr<std::shared_ptr<const DataSchema>> SchemaOfRun(
    const SavedRunOptions& options) {
  ASSIGN_OR_RETURN(
      const RunSchema run,
      FindRunSchema(RunFolder(options.train_dir, options.init.path),
                    options.model.reporter));
  return run.schema;
}

// By class: the data set's, or those that the training had; a model may have
// more outputs.
std::vector<std::string> NamesOf(const DataSet& data_set, const DataSchema* run,
                                 const std::string& train_dir,
                                 int64_t num_outputs) {
  std::vector<std::string> names = data_set.ClassNames();
  if (run != nullptr) {
    names = ClassNamesOf(*run);
  } else if (names.empty() && !train_dir.empty()) {
    names = ReadClassNames(train_dir);
  }
  if (names.empty()) return names;
  for (auto i = static_cast<int64_t>(names.size()); i < num_outputs; ++i) {
    names.push_back(absl::StrCat(i));
  }
  return names;
}

PredictionFile::Columns ColumnsOf(const SavedRunOptions& options,
                                  const CompiledModel& model,
                                  const DataSet& data_set,
                                  const DataSchema* run) {
  PredictionFile::Columns columns;
  columns.has_names = !data_set.RowName(0).empty();
  columns.has_class = model.loss().prediction == Prediction::kSoftmax;
  if (columns.has_class) {
    columns.class_names =
        NamesOf(data_set, run, options.train_dir, model.num_outputs());
  }
  columns.number_name =
      options.values == PredictionValues::kOutputs ? "output" : "probability";
  if (options.values != PredictionValues::kClass) {
    columns.num_numbers = model.num_outputs();
  }
  columns.num_rows = data_set.num_examples();
  return columns;
}

// Null without --labels. Errors: InvalidArgument for another ending than .npy.
absl::StatusOr<std::unique_ptr<PredictionFile>> CreateLabelFile(
    const SavedRunOptions& options, const CompiledModel& model,
    int64_t num_rows) {
  if (options.labels.empty()) return nullptr;
  if (!absl::EndsWith(options.labels, ".npy")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--labels=", options.labels, ": wanted a file that ends in .npy"));
  }
  PredictionFile::Columns columns;
  columns.num_rows = num_rows;
  if (model.loss().reads_targets) columns.num_numbers = model.num_outputs();
  return PredictionFile::Create(options.labels, columns);
}

// The rows of one prediction run.
class Predictor {
 public:
  // All outlive this; `labels` may be null.
  Predictor(CompiledModel* model, PredictionValues values, TestRows* rows,
            PredictionFile* file, PredictionFile* labels)
      : model_(model),
        prediction_(model->loss().prediction),
        values_(values),
        rows_(rows),
        file_(file),
        labels_(labels),
        row_(model->num_outputs()) {}

  // The next batch, with the bad rows among its own; false after the last one.
  absl::StatusOr<bool> PredictBatch() {
    ASSIGN_OR_RETURN(const int64_t end, rows_->Fill(done_));
    if (end == done_) return false;
    const std::vector<int64_t>& indices = rows_->indices();
    if (!indices.empty()) {
      RETURN_IF_ERROR(model_->Evaluate(rows_->batch()).status());
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      RETURN_IF_ERROR(AddBadRows(indices[i]));
      RETURN_IF_ERROR(AddLabel(i));
      RETURN_IF_ERROR(
          AddRow(model_->outputs().subspan(i * row_.size(), row_.size())));
    }
    RETURN_IF_ERROR(AddBadRows(end));
    return true;
  }

  int64_t done() const { return done_; }
  // Rows whose outputs are NaN or infinite: they have no values either.
  int64_t non_finite() const { return non_finite_; }

 private:
  std::string NextName() { return rows_->data_set().RowName(done_++); }

  // Those before `end`.
  absl::Status AddBadRows(int64_t end) {
    PredictionFile::Row row;
    row.is_bad = true;
    while (done_ < end) {
      row.name = NextName();
      RETURN_IF_ERROR(file_->Add(row));
      if (labels_ != nullptr) RETURN_IF_ERROR(labels_->Add(row));
    }
    return absl::OkStatus();
  }

  // Adds the label of row `i` of the batch.
  absl::Status AddLabel(size_t i) {
    if (labels_ == nullptr) return absl::OkStatus();
    PredictionFile::Row row;
    if (model_->loss().reads_targets) {
      row.numbers =
          rows_->batch().targets().subspan(i * row_.size(), row_.size());
    } else {
      row.class_index = rows_->batch().labels()[i];
    }
    return labels_->Add(row);
  }

  // The row done_ of the set.
  absl::Status AddRow(absl::Span<const float> outputs) {
    std::copy(outputs.begin(), outputs.end(), row_.begin());
    PredictionFile::Row row;
    row.name = NextName();
    if (FirstNonFinite(row_) >= 0) {
      ++non_finite_;
      row.is_bad = true;
      return file_->Add(row);
    }
    row.class_index =
        std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
    if (values_ == PredictionValues::kProbabilities) {
      if (prediction_ == Prediction::kSoftmax) {
        Softmax(absl::MakeSpan(row_));
      } else {
        Sigmoid(absl::MakeSpan(row_));
      }
    }
    if (values_ != PredictionValues::kClass) row.numbers = row_;
    return file_->Add(row);
  }

  CompiledModel* const model_;
  const Prediction prediction_;
  const PredictionValues values_;
  TestRows* const rows_;
  PredictionFile* const file_;
  PredictionFile* const labels_;
  std::vector<float> row_;
  int64_t done_ = 0;
  int64_t non_finite_ = 0;
};

// Checks the rows that are no bad ones.
absl::Status CheckPredicted(const SavedRunOptions& options,
                            const Predictor& predictor, int64_t bad) {
  EvaluationResult counts;
  counts.examples = predictor.done() - bad;
  counts.non_finite = predictor.non_finite();
  if (options.model.training.non_finite().allow()) return absl::OkStatus();
  return CheckHasAnswers(counts);
}

void ReportPredicted(const SavedRunOptions& options, const Predictor& predictor,
                     int64_t bad) {
  const Reporter& reporter = options.model.reporter;
  reporter.Info(absl::StrCat("wrote ",
                             predictor.done() - bad - predictor.non_finite(),
                             " predictions to ", options.output));
  if (predictor.non_finite() > 0) {
    reporter.Warning(absl::StrCat(
        "prediction: the outputs of ", predictor.non_finite(), " of ",
        predictor.done(),
        " rows are NaN or infinite: they stand there without values"));
  }
  if (bad > 0) {
    reporter.Warning(
        absl::StrCat("prediction: ", bad, " of ", predictor.done(),
                     " rows are bad, and stand there without values"));
  }
}

// Writes the files of `resolved`, whose values are not kAuto.
absl::Status Predict(const SavedRunOptions& resolved, CompiledModel* model,
                     const DataSchema* run, TestRows* rows) {
  const DataSet& data_set = rows->data_set();
  ASSIGN_OR_RETURN(
      const auto file,
      PredictionFile::Create(resolved.output,
                             ColumnsOf(resolved, *model, data_set, run)));
  ASSIGN_OR_RETURN(const auto labels,
                   CreateLabelFile(resolved, *model, data_set.num_examples()));
  Predictor predictor(model, resolved.values, rows, file.get(), labels.get());
  WorkProgress progress(OutputOf(resolved));
  progress.Begin({"prediction", data_set.num_examples()});
  for (bool more = true; more;) {
    const int64_t before = predictor.done();
    ASSIGN_OR_RETURN(more, predictor.PredictBatch());
    progress.Add(predictor.done() - before);
  }
  progress.Finish();
  RETURN_IF_ERROR(CheckPredicted(resolved, predictor, rows->bad()));
  if (labels != nullptr) RETURN_IF_ERROR(labels->Finish());
  RETURN_IF_ERROR(file->Finish());
  ReportPredicted(resolved, predictor, rows->bad());
  return absl::OkStatus();
}

}  // namespace

absl::Status EvaluateSaved(const SavedRunOptions& options) {
  if (!options.output.empty()) {
    RETURN_IF_ERROR(OfOutput(CheckCanWrite(options.output)));
  }
  const TrainingSpec& training = options.model.training;
  ASSIGN_OR_RETURN(const std::unique_ptr<SavedModel> saved,
                   SavedModel::Create(options.model));
  CompiledModel* const model = saved->model();
  RETURN_IF_ERROR(CheckEvaluation(training, *model));
  ASSIGN_OR_RETURN(const std::shared_ptr<const DataSchema> run,
                   SchemaOfRun(options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<DataSet> data_set,
      OpenHalfOfRun(training, *model, {options.half, LabelsOf(model->loss())},
                    run, OutputOf(options)));
  ASSIGN_OR_RETURN(const std::string path, LoadInto(options, saved.get()));
  Batch batch = MakeBatch(*data_set, model->batch_size());
  BadRecords bad_records(options.model.reporter);
  ASSIGN_OR_RETURN(
      const EvaluationResult result,
      EvaluateModel(
          training.evaluation(), *data_set, model, batch, [] { return true; },
          SkipsBad(training) ? &bad_records : nullptr, OutputOf(options)));
  options.model.reporter.Info(
      absl::StrCat("evaluated ", path, ": ", DescribeEvaluation(result), " ",
                   result.NameOf("examples"), "=", result.examples));
  ReportRemarks(result, options.model.reporter);
  ReportClasses(result, options.model.reporter);
  if (!options.output.empty()) {
    RETURN_IF_ERROR(
        OfOutput(WriteFileAtomically(options.output, EvaluationJson(result))));
  }
  if (training.non_finite().allow()) return absl::OkStatus();
  return CheckHasAnswers(result);
}

absl::Status PredictSaved(const SavedRunOptions& options) {
  if (options.output.empty()) {
    return absl::InvalidArgumentError(
        "worker predict: wanted --output=FILE, a .csv, .jsonl or .npy file for "
        "the predictions");
  }
  // Whose loss nobody reads: rows need no weights.
  SavedModel::Options unweighted = options.model;
  unweighted.training.clear_class_weight();
  unweighted.training.mutable_input()->clear_weight_column();
  ASSIGN_OR_RETURN(const std::unique_ptr<SavedModel> saved,
                   SavedModel::Create(unweighted));
  CompiledModel* const model = saved->model();
  SavedRunOptions resolved = options;
  ASSIGN_OR_RETURN(resolved.values,
                   ResolveValues(options.values, model->loss().prediction));
  const LabelKind kind =
      options.labels.empty() ? LabelKind::kNone : LabelsOf(model->loss());
  ASSIGN_OR_RETURN(const std::shared_ptr<const DataSchema> run,
                   SchemaOfRun(options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TestRows> rows,
      TestRows::Open(options.model.training, *model, {options.half, kind}, run,
                     OutputOf(options)));
  RETURN_IF_ERROR(LoadInto(options, saved.get()).status());
  return Predict(resolved, model, run.get(), rows.get());
}

}  // namespace muster
