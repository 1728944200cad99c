#ifndef WORKER_TASK_WORKER_DATA_H_
#define WORKER_TASK_WORKER_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/data_schema.pb.h"
#include "worker/checkpoint/run_schema.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/bad_records.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/stream/example_stream.h"
#include "worker/task/worker_job.h"
#include "worker/task/worker_towers.h"

namespace muster {

// A worker's data, as its model reads them: the second stage of a WorkerTask.
class WorkerData {
 public:
  // Opens the training half and, in the chief, the halves that are evaluated,
  // by the schema of the run that goes on; reports what was found. Errors: what
  // is wrong with the data or with what the training wants of them, by name.
  static absl::StatusOr<std::unique_ptr<WorkerData>> Create(
      const WorkerJob& job, const WorkerTowers& towers);

  // Null: the rows are those of open_stream().
  const DataSet* training_set() const { return training_set_.get(); }
  const OpenStream& open_stream() const { return open_stream_; }
  // The training half's rows; 0: it is a stream.
  int64_t num_examples() const;
  // Null without such a half, and but in the chief.
  const DataSet* validation_set() const { return validation_set_.get(); }
  const DataSet* test_set() const { return test_set_.get(); }
  // Whether there is either of them.
  bool is_evaluated() const {
    return validation_set_ != nullptr || test_set_ != nullptr;
  }
  // Null: a bad record is an error.
  BadRecords* bad_records() const { return bad_records_.get(); }
  // The schema of the run; the chief's has all halves.
  const DataSchema& schema() const { return schema_; }

 private:
  WorkerData() = default;

  absl::Status Open(const WorkerJob& job, const CompiledModel& model);
  // Returns the schema of what is there now.
  absl::StatusOr<DataSchema> OpenHalves(const WorkerJob& job,
                                        const CompiledModel& model,
                                        const RunSchema& of_run);
  // Reports that there is no test half.
  absl::Status OpenEvaluatedHalves(
      const WorkerOptions& options, const CompiledModel& model,
      const std::shared_ptr<const DataSchema>& run);
  // Returns its schema.
  absl::StatusOr<DataSchema> OpenTrainingHalf(
      const WorkerOptions& options, const CompiledModel& model,
      const std::shared_ptr<const DataSchema>& run);
  void ReportTrainingHalf(const WorkerOptions& options,
                          const std::vector<std::string>& files,
                          const std::vector<std::string>& remarks) const;

  std::unique_ptr<DataSet> training_set_;
  OpenStream open_stream_;
  std::unique_ptr<DataSet> validation_set_;
  std::unique_ptr<DataSet> test_set_;
  std::unique_ptr<BadRecords> bad_records_;
  DataSchema schema_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_DATA_H_
