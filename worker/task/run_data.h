// The data of a run, which are those that it began with: the schema of its
// checkpoints rules where it goes on and where its model is used.
#ifndef WORKER_TASK_RUN_DATA_H_
#define WORKER_TASK_RUN_DATA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "common/base/work_progress.h"
#include "proto/data_schema.pb.h"
#include "proto/training.pb.h"
#include "worker/checkpoint/run_schema.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {

// As ReadRunSchema, of real files; says the note.
absl::StatusOr<RunSchema> FindRunSchema(const std::string& train_dir,
                                        const Reporter& reporter);

// The folder of the run whose parameters are used: `train_dir`, or the one that
// `init_from` (a file or a folder; "": none) lies in, also below a
// checkpoint's.
std::string RunFolder(const std::string& train_dir,
                      const std::string& init_from);

// Makes input.dir, unless it is empty, mean the same in any working folder.
void MakeDirAbsolute(InputSpec* input);

// Whether both say the same but of rows and files: data that were opened by one
// are open as the other says.
bool IsSameData(const DataSchema& a, const DataSchema& b);

// Whether `training` may go on with the data of `run`, as far as that can be
// said before they are opened. Errors: CheckSchemaChange's.
absl::Status CheckRunTraining(const DataSchema& run,
                              const TrainingSpec& training);

// Lines about a new run that begins with the parameters of another one, which
// the flag --init_from names: what these parameters were trained to read, in
// order, where `now` is otherwise. A map that leaves layers out
// (`leaves_out`) may do so for the classes.
std::vector<std::string> DescribeOtherSource(const DataSchema& source,
                                             const DataSchema& now,
                                             bool leaves_out);

// The schema with which a training goes on: columns and label are those of
// `run` (null: a new run's are those of `now`), the rows are those of `now`,
// which CompleteSchema made. Says what changed. Errors: CheckSchemaChange's.
absl::StatusOr<DataSchema> SettleSchema(const DataSchema* run, DataSchema now,
                                        const Reporter& reporter);

// The test or the validation half, with which labels.
struct UsedHalf {
  Split half = Split::kTest;
  LabelKind labels = LabelKind::kClass;
};

// A half, opened by the schema `run` (null: it says itself what it is); reports
// its remarks. Errors: OpenDataSet's.
absl::StatusOr<std::unique_ptr<DataSet>> OpenHalf(
    const TrainingSpec& training, const CompiledModel& model,
    const UsedHalf& used, std::shared_ptr<const DataSchema> run,
    const ProgressOutput& output);

// A half of a run whose model is used, as `run` says (null: it does not); says
// what changed. Errors: OpenHalf's, CheckSchemaChange's.
absl::StatusOr<std::unique_ptr<DataSet>> OpenHalfOfRun(
    const TrainingSpec& training, const CompiledModel& model,
    const UsedHalf& used, const std::shared_ptr<const DataSchema>& run,
    const ProgressOutput& output);

}  // namespace muster

#endif  // WORKER_TASK_RUN_DATA_H_
