#ifndef WORKER_INPUT_INPUT_PIPELINE_H_
#define WORKER_INPUT_INPUT_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "proto/training.pb.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/row_position.h"
#include "worker/input/step_source.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// The source of an InputPipeline: one of the two.
struct InputData {
  // A data set is one without more words.
  InputData(const DataSet* set) : data_set(set) {}  // NOLINT
  explicit InputData(OpenStream stream) : open_stream(std::move(stream)) {}

  // Outlives what reads it.
  const DataSet* data_set = nullptr;
  OpenStream open_stream;
};

// The batches of one worker, endlessly, in the order of DataOrder, or of
// StreamedRows: for each of its steps as many as its towers and the
// accumulation of gradients want, which are consecutive slices of the step's
// rows. A thread prepares `prefetch` of them ahead in recycled buffers, with
// others that read and map rows at the same time; the order, the bits and the
// errors do not depend on either number. For one thread; destroying the
// pipeline stops its own.
class InputPipeline {
 public:
  struct Options {
    uint64_t seed = 0;
    // A data set's.
    bool shuffle = true;
    // A stream's: EndlessRecords' buffer.
    int64_t shuffle_buffer = 0;
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
    // Threads that prepare the rows of a step.
    int threads = 1;
    // Counts the bad records that others take the place of (IndexedRows and
    // StreamedRows say which); outlives the pipeline. Null: they are errors.
    BadRecords* bad_records = nullptr;
    // Starts the thread that prepares ahead, and waits for it.
    const Clock* clock = SystemClock();
  };

  // Errors: InvalidArgument (an option out of range, a start of an unknown
  // kind, or a data set smaller than one step of all workers); those of opening
  // the stream.
  static absl::StatusOr<std::unique_ptr<InputPipeline>> Create(
      const InputData& data, const Options& options);

  InputPipeline(const InputPipeline&) = delete;
  InputPipeline& operator=(const InputPipeline&) = delete;
  ~InputPipeline();

  // The batches of the next step, valid until the next call. Waits while they
  // are prepared. Errors: DataSet::Read's, once its step has come; the pipeline
  // is over then.
  absl::StatusOr<absl::Span<const Batch>> Next();

  // Ends a Next that waits for rows, and all later ones that would, as stopped
  // (IsStopped). From any thread.
  void Stop();

  // The batches that the next call of Next returns, if it is prepared already;
  // valid as long as that.
  struct PreparedStep {
    // None: it is not prepared.
    absl::Span<const Batch> batches;
    // As step_number() after that call.
    uint64_t number = 0;
  };
  PreparedStep Peek();

  // Where another pipeline goes on after what Next has returned.
  DataPosition position() const {
    return MakeDataPosition(position_, source_->step_rows(), source_->order());
  }
  // Is it there? Not at what is no position.
  bool IsAt(const DataPosition& position) const;

  // When the thread began with the rows of what Next has returned last, and had
  // them, read and mapped; options.clock's times.
  struct Preparation {
    absl::Time begun;
    absl::Time done;
  };
  const Preparation& preparation() const { return preparation_; }

  // As StepSource::StepNumber, of what Next has returned last.
  uint64_t step_number() const { return source_->StepNumber(position_); }

  // Local steps of each worker in one epoch; 0: not known.
  int64_t steps_per_epoch() const { return source_->steps_per_epoch(); }

 private:
  // One step's, or the error that came in their place.
  struct StepBatches {
    std::vector<Batch> batches;
    absl::Status status;
    // Where the next step is taken from.
    RowPosition after;
    Preparation preparation;
  };

  InputPipeline(std::unique_ptr<StepSource> source, const Options& options,
                const RowPosition& start);

  // The thread: fills free batches, from `position` on, until stopped.
  void Prepare(RowPosition position);
  // Waits for free batches; nullptr when stopped.
  StepBatches* TakeFree();
  void Fill(const RowPosition& position, StepBatches* step);
  void AwaitThat(bool (InputPipeline::*condition)() const)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasFreeOrStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !free_.empty();
  }
  bool HasReadyOrStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !ready_.empty();
  }

  // Constant after construction.
  const Options options_;

  // But for what any thread may call, of the preparing thread; of Next if there
  // is none.
  const std::unique_ptr<StepSource> source_;

  // For the thread that calls Next.
  RowPosition position_;
  Preparation preparation_;
  StepBatches* current_ = nullptr;

  // The batches of each step are owned by the place that points to them:
  // free_, ready_, current_, or the preparing thread.
  std::vector<StepBatches> batches_;

  absl::Mutex mu_;
  std::deque<StepBatches*> free_ ABSL_GUARDED_BY(mu_);
  std::deque<StepBatches*> ready_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  // Last, so that it starts after all else. Null: Next prepares.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // WORKER_INPUT_INPUT_PIPELINE_H_
