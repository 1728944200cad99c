#ifndef WORKER_TASK_EVALUATOR_H_
#define WORKER_TASK_EVALUATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/work_progress.h"
#include "proto/training.pb.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/hook/evaluation.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
#include "worker/metric/metric_set.h"
#include "worker/session/round_pauser.h"

namespace muster {

// OK if evaluation.metric fits the model, and stop.target_accuracy has an
// accuracy. InvalidArgument naming the field else.
absl::Status CheckEvaluation(const TrainingSpec& training,
                             const CompiledModel& model);

// The half that is evaluated while a model is trained: the validation half, or
// without one the test half.
Split WatchedHalf(const InputSpec& input);

// Without a test half: what follows from that, in one line; OK if there is a
// validation half, or the training wants no evaluation before its end, else
// InvalidArgument naming the field.
std::string DescribeNoEvaluation(const TrainingSpec& training);
absl::Status CheckNoEvaluation(const TrainingSpec& training);

// An evaluation under way, batch by batch.
class EvaluationSums {
 public:
  // `class_names`: of the rows, by class; empty if they have none.
  // Errors: MetricSet::Create's.
  static absl::StatusOr<EvaluationSums> Create(
      const EvaluationSpec& spec, const CompiledModel& model,
      std::vector<std::string> class_names);

  // The rows of `batch`, which `model` has just evaluated to the mean `loss`
  // over their weights.
  void Add(const Batch& batch, const CompiledModel& model, double loss);

  int64_t examples() const { return examples_; }
  // REQUIRES: a row was added.
  EvaluationResult Finish() const;

 private:
  explicit EvaluationSums(MetricSet metrics) : metrics_(std::move(metrics)) {}

  MetricSet metrics_;
  int64_t examples_ = 0;
  int64_t non_finite_ = 0;
  double loss_sum_ = 0;
  // Of the rows; each has 1 where they have none.
  double weight_ = 0;
};

// Goes through `data_set` in order with the parameters that `model` (in
// evaluate mode) has. `batch` is room for its batches. Errors: InvalidArgument
// for a data set without a row but bad ones; stopped (IsStopped) once `go_on`,
// asked before each batch, says no; MetricSet::Create's; the model's. With
// `bad_records` bad rows are left out, counted and told. `output` shows how far
// it is.
absl::StatusOr<EvaluationResult> EvaluateModel(
    const EvaluationSpec& spec, const DataSet& data_set, CompiledModel* model,
    Batch& batch, absl::FunctionRef<bool()> go_on,
    BadRecords* bad_records = nullptr, const ProgressOutput& output = {});

// An evaluation of a whole data set with the newest parameters. One thread.
class Evaluator {
 public:
  // `data_set`, `model` (in evaluate mode), `client` and `rounds` outlive this.
  // `spec` has the metrics. `rounds` is null but in synchronous replication,
  // where every shard's values are then those after the newest update.
  // `bad_records` and `output` are EvaluateModel's.
  Evaluator(const EvaluationSpec& spec, const DataSet* data_set,
            CompiledModel* model, ParameterClient* client,
            RoundPauser* rounds = nullptr, BadRecords* bad_records = nullptr,
            ProgressOutput output = {});

  // Pulls the parameters, then reads the data set in order. Errors:
  // EvaluateModel's.
  absl::StatusOr<EvaluationResult> Evaluate(absl::FunctionRef<bool()> go_on);
  // The same of parameters that `read` brings in the place of a pull.
  using Read =
      absl::FunctionRef<absl::Status(absl::Span<const MutableTensorView>)>;
  absl::StatusOr<EvaluationResult> Evaluate(Read read,
                                            absl::FunctionRef<bool()> go_on);

 private:
  absl::Status Pull();

  const EvaluationSpec spec_;
  const DataSet* const data_set_;
  CompiledModel* const model_;
  ParameterClient* const client_;
  RoundPauser* const rounds_;
  BadRecords* const bad_records_;
  const ProgressOutput output_;
  // The model's parameters.
  std::vector<MutableTensorView> into_;
  Batch batch_;
};

}  // namespace muster

#endif  // WORKER_TASK_EVALUATOR_H_
