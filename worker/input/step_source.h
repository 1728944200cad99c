#ifndef WORKER_INPUT_STEP_SOURCE_H_
#define WORKER_INPUT_STEP_SOURCE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/batch.h"
#include "worker/input/row_position.h"

namespace muster {

// Where an InputPipeline has the rows of a worker's steps from. One thread at a
// time, but for Stop and what is const.
class StepSource {
 public:
  virtual ~StepSource() = default;

  // A batch without rows yet, with room for those of one batch.
  virtual Batch MakeBatch() const = 0;

  // Fills the batches of the step that is taken from `position`; returns the
  // position after it. Steady state allocates nothing. Errors: those of the
  // data, the first row's that cannot be read; Cancelled after Stop.
  virtual absl::StatusOr<RowPosition> Fill(const RowPosition& position,
                                           absl::Span<Batch> batches) = 0;

  // Ends a Fill that is under way, and all later ones. From any thread.
  virtual void Stop() = 0;

  // The number of the step that ends at `after`: one of its own for each step
  // of a worker in a run.
  virtual uint64_t StepNumber(const RowPosition& after) const = 0;

  // Steps that each worker makes in one epoch; 0: not known.
  virtual int64_t steps_per_epoch() const = 0;

  // Rows that one step of all workers takes.
  virtual int64_t step_rows() const = 0;

  virtual RowOrder order() const = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_STEP_SOURCE_H_
