#ifndef WORKER_INPUT_INPUT_PIPELINE_H_
#define WORKER_INPUT_INPUT_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"
#include "worker/input/batch.h"
#include "worker/input/data_order.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/row_position.h"

namespace muster {

// The batches of one worker, endlessly, in the order of DataOrder: for each of
// its steps as many as its towers and the accumulation of gradients want, which
// are consecutive slices of the step's rows. A thread prepares `prefetch` of
// them ahead in recycled buffers; the order does not depend on it. For one
// thread; destroying the pipeline stops its own.
class InputPipeline {
 public:
  struct Options {
    uint64_t seed = 0;
    bool shuffle = true;
    // Rows of one batch.
    int64_t batch_size = 1;
    // Batches of one local step.
    int64_t batches_per_step = 1;
    int64_t worker_index = 0;
    int64_t num_workers = 1;
    // Where it begins: the position() of a worker of any run.
    DataPosition start;
    // Batches of a tower prepared ahead: of whole steps, so at least those of
    // one; with 0 each is made by Next itself.
    int64_t prefetch = 2;
    // How many of batches_per_step one tower takes.
    int64_t batches_per_tower = 1;
  };

  // `data_set` must outlive the pipeline. Errors: InvalidArgument (an option
  // out of range, a start of an unknown kind, or a data set smaller than one
  // step of all workers).
  static absl::StatusOr<std::unique_ptr<InputPipeline>> Create(
      const DataSet* data_set, const Options& options);

  InputPipeline(const InputPipeline&) = delete;
  InputPipeline& operator=(const InputPipeline&) = delete;
  ~InputPipeline();

  // The batches of the next step, valid until the next call. Waits while they
  // are prepared. Errors: DataSet::Read's, once its step has come; the pipeline
  // is over then.
  absl::StatusOr<absl::Span<const Batch>> Next();

  // The batches that the next call of Next returns, if they are prepared
  // already, else nothing; valid as long as that.
  absl::Span<const Batch> Peek();

  // Where another pipeline goes on after what Next has returned.
  DataPosition position() const {
    return MakeDataPosition(position_, order_.step_rows());
  }
  // Is it there? Not at what is no position.
  bool IsAt(const DataPosition& position) const;

  // As DataOrder::StepNumber: of what Next has returned last, and of what it
  // returns next.
  uint64_t step_number() const { return order_.StepNumber(position_); }
  uint64_t next_step_number() const {
    return order_.StepNumber(order_.After(position_));
  }

  // Local steps of each worker in one epoch.
  int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }

 private:
  // One step's, or the error that came in their place.
  struct StepBatches {
    std::vector<Batch> batches;
    absl::Status status;
  };

  InputPipeline(const DataSet* data_set, const Options& options,
                const RowPosition& start, DataOrder order);

  // The thread: fills free batches, from `position` on, until stopped.
  void Prepare(RowPosition position);
  // Waits for free batches; nullptr when stopped.
  StepBatches* TakeFree();
  void Fill(const RowPosition& position, StepBatches* step);
  bool HasFreeOrStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !free_.empty();
  }
  bool HasReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !ready_.empty();
  }

  // Constant after construction.
  const DataSet* const data_set_;
  const Options options_;

  // But for what is const, of the preparing thread; of Next if there is none.
  DataOrder order_;

  // For the thread that calls Next.
  RowPosition position_;
  StepBatches* current_ = nullptr;

  // The batches of each step are owned by the place that points to them:
  // free_, ready_, current_, or the preparing thread.
  std::vector<StepBatches> batches_;

  absl::Mutex mu_;
  std::deque<StepBatches*> free_ ABSL_GUARDED_BY(mu_);
  std::deque<StepBatches*> ready_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  // Last, so that it starts after all else.
  std::thread thread_;
};

}  // namespace muster

#endif  // WORKER_INPUT_INPUT_PIPELINE_H_
