#include "worker/task/saved_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/fill_batch.h"
#include "worker/task/class_names_file.h"
#include "worker/task/evaluator.h"
#include "worker/task/prediction_file.h"
#include "worker/task/result_file.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

bool GoesOn(const SavedRunOptions& options) {
  return !options.latch->WaitFor(absl::ZeroDuration()).has_value();
}

bool SkipsBad(const TrainingSpec& training) {
  return training.input().on_bad_record() == SKIP;
}

// Loads the parameters, and says from where.
absl::StatusOr<std::string> LoadInto(const SavedRunOptions& options,
                                     SavedModel* saved) {
  PosixFileSystem file_system;
  ASSIGN_OR_RETURN(const std::string path,
                   saved->Load(&file_system, options.train_dir, options.init));
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
        "--predict_values=class: this model's loss has no classes; use "
        "--predict_values=outputs");
  }
  if (values == PredictionValues::kProbabilities &&
      prediction == Prediction::kIdentity) {
    return absl::InvalidArgumentError(
        "--predict_values=probabilities: this model's outputs are no "
        "probabilities; use --predict_values=outputs");
  }
  return values;
}

// By class: the data set's, or those that the training had; a model may have
// more outputs.
std::vector<std::string> NamesOf(const DataSet& data_set,
                                 const std::string& train_dir,
                                 int64_t num_outputs) {
  std::vector<std::string> names = data_set.ClassNames();
  if (names.empty()) names = ReadClassNames(train_dir);
  if (names.empty()) return names;
  for (auto i = static_cast<int64_t>(names.size()); i < num_outputs; ++i) {
    names.push_back(absl::StrCat(i));
  }
  return names;
}

PredictionFile::Columns ColumnsOf(const SavedRunOptions& options,
                                  const DataSet& data_set,
                                  const CompiledModel& model,
                                  PredictionValues values) {
  PredictionFile::Columns columns;
  columns.has_names = !data_set.RowName(0).empty();
  columns.has_class = model.loss().prediction == Prediction::kSoftmax;
  if (columns.has_class) {
    columns.class_names =
        NamesOf(data_set, options.train_dir, model.num_outputs());
  }
  columns.number_name =
      values == PredictionValues::kOutputs ? "output" : "probability";
  if (values != PredictionValues::kClass) {
    columns.num_numbers = model.num_outputs();
  }
  columns.num_rows = data_set.num_examples();
  return columns;
}

// The rows of one prediction run.
class Predictor {
 public:
  // `bad_records` null: a bad row is an error.
  Predictor(const DataSet* data_set, CompiledModel* model,
            PredictionValues values, BadRecords* bad_records,
            PredictionFile* file)
      : data_set_(data_set),
        model_(model),
        values_(values),
        bad_records_(bad_records),
        file_(file) {
    const LossType& loss = model->loss();
    // Labels that nobody looks at, but which are there: class 0, target 0.
    batch_ = MakeLabelledBatch(model->batch_size(), data_set->example_shape(),
                               loss.reads_targets ? model->num_outputs() : 0);
    row_.resize(model->num_outputs());
  }

  // The next batch, with the bad rows among its own; false after the last one.
  absl::StatusOr<bool> PredictBatch() {
    ASSIGN_OR_RETURN(
        const int64_t end,
        FillBatchInOrder(*data_set_, done_, bad_records_, batch_, &indices_));
    if (end == done_) return false;
    if (batch_.rows > 0) RETURN_IF_ERROR(model_->Evaluate(batch_).status());
    for (int64_t i = 0; i < batch_.rows; ++i) {
      RETURN_IF_ERROR(AddBadRows(indices_[i]));
      RETURN_IF_ERROR(AddRow(i));
    }
    RETURN_IF_ERROR(AddBadRows(end));
    return true;
  }

  int64_t done() const { return done_; }

 private:
  // Those before `end`.
  absl::Status AddBadRows(int64_t end) {
    PredictionFile::Row row;
    row.is_bad = true;
    for (; done_ < end; ++done_) {
      row.name = data_set_->RowName(done_);
      RETURN_IF_ERROR(file_->Add(row));
    }
    return absl::OkStatus();
  }

  // The batch's row `i`, which is row done_ of the set.
  absl::Status AddRow(int64_t i) {
    const absl::Span<const float> outputs =
        model_->outputs().subspan(i * row_.size(), row_.size());
    std::copy(outputs.begin(), outputs.end(), row_.begin());
    PredictionFile::Row row;
    row.name = data_set_->RowName(done_++);
    row.class_index =
        std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
    if (values_ == PredictionValues::kProbabilities) {
      if (model_->loss().prediction == Prediction::kSoftmax) {
        Softmax(absl::MakeSpan(row_));
      } else {
        Sigmoid(absl::MakeSpan(row_));
      }
    }
    if (values_ != PredictionValues::kClass) row.numbers = row_;
    return file_->Add(row);
  }

  const DataSet* const data_set_;
  CompiledModel* const model_;
  const PredictionValues values_;
  BadRecords* const bad_records_;
  PredictionFile* const file_;
  Batch batch_;
  // Where its rows are in the set.
  std::vector<int64_t> indices_;
  std::vector<float> row_;
  int64_t done_ = 0;
};

}  // namespace

absl::Status EvaluateSaved(const SavedRunOptions& options) {
  const TrainingSpec& training = options.model.training;
  ASSIGN_OR_RETURN(const std::unique_ptr<SavedModel> saved,
                   SavedModel::Create(options.model));
  CompiledModel* const model = saved->model();
  RETURN_IF_ERROR(CheckEvaluation(training, *model));
  ASSIGN_OR_RETURN(const std::unique_ptr<DataSet> data_set,
                   OpenDataSet(training, *model, Split::kTest));
  ASSIGN_OR_RETURN(const std::string path, LoadInto(options, saved.get()));
  Batch batch = MakeBatch(*data_set, model->batch_size());
  BadRecords bad_records(options.model.reporter);
  ASSIGN_OR_RETURN(const EvaluationResult result,
                   EvaluateModel(
                       training.evaluation(), *data_set, model, batch,
                       [&options] { return GoesOn(options); },
                       SkipsBad(training) ? &bad_records : nullptr));
  options.model.reporter.Info(absl::StrCat("evaluated ", path, ": ",
                                           DescribeEvaluation(result),
                                           " examples=", result.examples));
  if (options.output.empty()) return absl::OkStatus();
  return WriteFileAtomically(options.output, EvaluationJson(result));
}

absl::Status PredictSaved(const SavedRunOptions& options) {
  if (options.output.empty()) {
    return absl::InvalidArgumentError(
        "--predict: wanted --output=FILE, a .csv, .jsonl or .npy file for the "
        "predictions");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<SavedModel> saved,
                   SavedModel::Create(options.model));
  CompiledModel* const model = saved->model();
  ASSIGN_OR_RETURN(const PredictionValues values,
                   ResolveValues(options.values, model->loss().prediction));
  ASSIGN_OR_RETURN(const std::unique_ptr<DataSet> data_set,
                   OpenDataSet(options.model.training, *model, Split::kTest,
                               LabelKind::kNone));
  RETURN_IF_ERROR(LoadInto(options, saved.get()).status());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionFile> file,
      PredictionFile::Create(options.output,
                             ColumnsOf(options, *data_set, *model, values)));
  BadRecords bad_records(options.model.reporter);
  Predictor predictor(data_set.get(), model, values,
                      SkipsBad(options.model.training) ? &bad_records : nullptr,
                      file.get());
  for (bool more = true; more;) {
    if (!GoesOn(options)) return absl::CancelledError("prediction: stopped");
    ASSIGN_OR_RETURN(more, predictor.PredictBatch());
  }
  const int64_t bad = bad_records.count();
  RETURN_IF_ERROR(file->Finish());
  options.model.reporter.Info(absl::StrCat("wrote ", predictor.done() - bad,
                                           " predictions to ", options.output));
  if (bad > 0) {
    options.model.reporter.Warning(
        absl::StrCat("prediction: ", bad, " of ", predictor.done(),
                     " rows are bad, and stand there without values"));
  }
  return absl::OkStatus();
}

}  // namespace muster
