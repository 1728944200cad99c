#include "worker/saved/test_rows.h"

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "worker/input/fill_batch.h"

namespace muster {

TestRows::TestRows(const TrainingSpec& training, const Reporter& reporter)
    : skips_bad_(training.input().on_bad_record() == SKIP),
      bad_records_(reporter) {}

absl::StatusOr<std::unique_ptr<TestRows>> TestRows::Open(
    const TrainingSpec& training, const CompiledModel& model,
    const UsedHalf& used, const std::shared_ptr<const DataSchema>& run,
    const ProgressOutput& output) {
  auto rows = absl::WrapUnique(new TestRows(training, output.reporter));
  ASSIGN_OR_RETURN(rows->data_set_,
                   OpenHalfOfRun(training, model, used, run, output));
  // Also where nobody looks at labels they are there: class 0, target 0.
  rows->batch_ =
      MakeLabelledBatch(model.batch_size(), rows->data_set_->example_shape(),
                        model.loss().reads_targets ? model.num_outputs() : 0);
  return rows;
}

absl::StatusOr<int64_t> TestRows::Fill(int64_t first) {
  return FillBatchInOrder(*data_set_, first,
                          skips_bad_ ? &bad_records_ : nullptr, batch_,
                          &indices_);
}

}  // namespace muster
