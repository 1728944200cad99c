#include "worker/saved/saved_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/fill_batch.h"
#include "worker/saved/ensemble.h"
#include "worker/saved/ensemble_evaluation.h"
#include "worker/saved/prediction_file.h"
#include "worker/task/class_names_file.h"
#include "worker/task/evaluator.h"
#include "worker/task/result_file.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

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
std::vector<std::string> NamesOf(const Ensemble& ensemble) {
  std::vector<std::string> names = ensemble.rows().data_set().ClassNames();
  for (size_t i = 0; names.empty() && i < ensemble.size(); ++i) {
    names = ReadClassNames(ensemble.member(i).train_dir);
  }
  if (names.empty()) return names;
  const int64_t num_outputs = ensemble.model(0).num_outputs();
  for (auto i = static_cast<int64_t>(names.size()); i < num_outputs; ++i) {
    names.push_back(absl::StrCat(i));
  }
  return names;
}

PredictionFile::Columns ColumnsOf(const Ensemble& ensemble,
                                  PredictionValues values) {
  const CompiledModel& model = ensemble.model(0);
  const DataSet& data_set = ensemble.rows().data_set();
  PredictionFile::Columns columns;
  columns.has_names = !data_set.RowName(0).empty();
  columns.has_class = model.loss().prediction == Prediction::kSoftmax;
  if (columns.has_class) columns.class_names = NamesOf(ensemble);
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
  Predictor(Ensemble* ensemble, PredictionValues values, PredictionFile* file)
      : ensemble_(ensemble),
        prediction_(ensemble->model(0).loss().prediction),
        values_(values),
        file_(file),
        row_(ensemble->model(0).num_outputs()) {}

  // The next batch, with the bad rows among its own; false after the last one.
  absl::StatusOr<bool> PredictBatch() {
    ASSIGN_OR_RETURN(const bool more, ensemble_->Next());
    if (!more) return false;
    for (size_t i = 0; i < ensemble_->indices().size(); ++i) {
      RETURN_IF_ERROR(AddBadRows(ensemble_->indices()[i]));
      RETURN_IF_ERROR(
          AddRow(ensemble_->outputs().subspan(i * row_.size(), row_.size())));
    }
    RETURN_IF_ERROR(AddBadRows(ensemble_->end()));
    return true;
  }

  int64_t done() const { return done_; }
  // Rows whose outputs are NaN or infinite: they have no values either.
  int64_t non_finite() const { return non_finite_; }

 private:
  std::string NextName() {
    return ensemble_->rows().data_set().RowName(done_++);
  }

  // Those before `end`.
  absl::Status AddBadRows(int64_t end) {
    PredictionFile::Row row;
    row.is_bad = true;
    while (done_ < end) {
      row.name = NextName();
      RETURN_IF_ERROR(file_->Add(row));
    }
    return absl::OkStatus();
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

  Ensemble* const ensemble_;
  const Prediction prediction_;
  const PredictionValues values_;
  PredictionFile* const file_;
  std::vector<float> row_;
  int64_t done_ = 0;
  int64_t non_finite_ = 0;
};

// The members of --ensemble, or the one model that there is.
Ensemble::Options EnsembleOptions(const SavedRunOptions& options) {
  Ensemble::Options ensemble;
  ensemble.members = options.members;
  if (ensemble.members.empty()) {
    ensemble.members.push_back(
        {"", options.model.training, options.train_dir, options.init});
  }
  ensemble.device_choice = options.model.device_choice;
  ensemble.log_device_placement = options.model.log_device_placement;
  ensemble.compute_threads = options.model.compute_threads;
  ensemble.reporter = options.model.reporter;
  return ensemble;
}

bool AllowsNonFinite(const Ensemble& ensemble) {
  return ensemble.member(0).training.non_finite().allow();
}

absl::Status EvaluateMembers(const SavedRunOptions& options) {
  Ensemble::Options of_ensemble = EnsembleOptions(options);
  of_ensemble.is_labelled = true;
  ASSIGN_OR_RETURN(const auto ensemble, Ensemble::Create(of_ensemble));
  RETURN_IF_ERROR(ensemble->Load());
  ASSIGN_OR_RETURN(const EnsembleResult result,
                   EvaluateEnsemble(ensemble.get()));
  options.model.reporter.Info(absl::StrCat(
      "evaluated ", result.members.size(), " members: ensemble ",
      DescribeEvaluation(result.ensemble), " mean ",
      DescribeEvaluation(result.mean), " examples=", result.mean.examples));
  options.print(EnsembleTable(result));
  if (!options.output.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(options.output, EnsembleJson(result)));
  }
  if (AllowsNonFinite(*ensemble)) return absl::OkStatus();
  for (const EnsembleResult::Member& member : result.members) {
    RETURN_IF_ERROR(Annotate(CheckHasAnswers(member.figures), member.name));
  }
  return CheckHasAnswers(result.ensemble);
}

// Of the rows that are no bad ones.
absl::Status CheckPredicted(const Ensemble& ensemble,
                            const Predictor& predictor) {
  EvaluationResult counts;
  counts.examples = predictor.done() - ensemble.rows().bad();
  counts.non_finite = predictor.non_finite();
  if (AllowsNonFinite(ensemble)) return absl::OkStatus();
  return CheckHasAnswers(counts);
}

}  // namespace

absl::Status EvaluateSaved(const SavedRunOptions& options) {
  if (!options.members.empty()) return EvaluateMembers(options);
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
  ASSIGN_OR_RETURN(
      const EvaluationResult result,
      EvaluateModel(
          training.evaluation(), *data_set, model, batch, [] { return true; },
          SkipsBad(training) ? &bad_records : nullptr));
  options.model.reporter.Info(absl::StrCat("evaluated ", path, ": ",
                                           DescribeEvaluation(result),
                                           " examples=", result.examples));
  if (!options.output.empty()) {
    RETURN_IF_ERROR(
        WriteFileAtomically(options.output, EvaluationJson(result)));
  }
  if (training.non_finite().allow()) return absl::OkStatus();
  return CheckHasAnswers(result);
}

absl::Status PredictSaved(const SavedRunOptions& options) {
  if (options.output.empty()) {
    return absl::InvalidArgumentError(
        "--predict: wanted --output=FILE, a .csv, .jsonl or .npy file for the "
        "predictions");
  }
  ASSIGN_OR_RETURN(const auto ensemble,
                   Ensemble::Create(EnsembleOptions(options)));
  ASSIGN_OR_RETURN(
      const PredictionValues values,
      ResolveValues(options.values, ensemble->model(0).loss().prediction));
  RETURN_IF_ERROR(ensemble->Load());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionFile> file,
      PredictionFile::Create(options.output, ColumnsOf(*ensemble, values)));
  Predictor predictor(ensemble.get(), values, file.get());
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(more, predictor.PredictBatch());
  }
  RETURN_IF_ERROR(CheckPredicted(*ensemble, predictor));
  RETURN_IF_ERROR(file->Finish());
  const int64_t bad = ensemble->rows().bad();
  options.model.reporter.Info(
      absl::StrCat("wrote ", predictor.done() - bad - predictor.non_finite(),
                   " predictions to ", options.output));
  if (predictor.non_finite() > 0) {
    options.model.reporter.Warning(absl::StrCat(
        "prediction: the outputs of ", predictor.non_finite(), " of ",
        predictor.done(),
        " rows are NaN or infinite: they stand there without values"));
  }
  if (bad > 0) {
    options.model.reporter.Warning(
        absl::StrCat("prediction: ", bad, " of ", predictor.done(),
                     " rows are bad, and stand there without values"));
  }
  return absl::OkStatus();
}

}  // namespace muster
