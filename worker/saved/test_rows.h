#ifndef WORKER_SAVED_TEST_ROWS_H_
#define WORKER_SAVED_TEST_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "common/base/work_progress.h"
#include "proto/data_schema.pb.h"
#include "proto/training.pb.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
#include "worker/task/run_data.h"

namespace muster {

// The test or the validation half of a data set in order, a batch at a time, as
// a model reads it.
// With input.on_bad_record: SKIP bad rows are left out, counted and told. One
// thread.
class TestRows {
 public:
  // Where used.labels is kNone, the batch has zeros in their place. Errors:
  // OpenHalfOfRun's, whose `run` it is.
  static absl::StatusOr<std::unique_ptr<TestRows>> Open(
      const TrainingSpec& training, const CompiledModel& model,
      const UsedHalf& used, const std::shared_ptr<const DataSchema>& run,
      const ProgressOutput& output);

  // The rows from `first` on, as many as there are and a batch of the model
  // has. Returns the index after the last one that was looked at. Errors:
  // DataSet::Read's.
  absl::StatusOr<int64_t> Fill(int64_t first);

  const DataSet& data_set() const { return *data_set_; }
  // What the last Fill has read, and where each row is in the set.
  const Batch& batch() const { return batch_; }
  const std::vector<int64_t>& indices() const { return indices_; }
  // So far.
  int64_t bad() const { return bad_records_.count(); }
  const BadRecords& bad_records() const { return bad_records_; }

 private:
  TestRows(const TrainingSpec& training, const Reporter& reporter);

  const bool skips_bad_;
  BadRecords bad_records_;
  std::unique_ptr<DataSet> data_set_;
  Batch batch_;
  std::vector<int64_t> indices_;
};

}  // namespace muster

#endif  // WORKER_SAVED_TEST_ROWS_H_
