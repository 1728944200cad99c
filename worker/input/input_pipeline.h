#ifndef WORKER_INPUT_INPUT_PIPELINE_H_
#define WORKER_INPUT_INPUT_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "proto/row_ledger.pb.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
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

// The batches of one worker's steps, of the rows that are leased to it: for
// each step as many as its towers and the accumulation of gradients want, which
// are consecutive slices of the step's rows. A thread prepares those of leases
// that are known, up to `prefetch` batches ahead, in recycled buffers, with
// others that read and map rows at the same time; the bits and the errors do
// not depend on either number. For one thread; destroying the pipeline stops
// its own.
class InputPipeline {
 public:
  // `threads`: the one that prepares is one of them.
  struct Options : StepSource::Options {
    // Batches of a tower prepared ahead: of whole steps, so at least those of
    // one; with 0 each is made by Next itself.
    int64_t prefetch = 2;
    // How many of batches_per_step one tower takes.
    int64_t batches_per_tower = 1;
    // Starts the thread that prepares ahead, and waits for it.
    const Clock* clock = SystemClock();
  };

  // Errors: InvalidArgument (an option out of range, or a data set smaller than
  // one step of this worker); those of opening the stream.
  static absl::StatusOr<std::unique_ptr<InputPipeline>> Create(
      const InputData& data, const Options& options);

  InputPipeline(const InputPipeline&) = delete;
  InputPipeline& operator=(const InputPipeline&) = delete;
  ~InputPipeline();

  // The rows of the next steps. What is prepared, or being prepared, of rows
  // that are no more among them, in this order, is thrown away; the others
  // stay. `pass`: as StepSource::SetPass; of a data set without effect.
  void SetLeases(absl::Span<const RowLease> leases, const StreamPass& pass);
  // The leases whose batches Next has not returned.
  int64_t num_leases() const;

  // The batches of the first lease, valid until the next call, which removes
  // it. Waits while they are prepared. Errors: FailedPrecondition without a
  // lease; DataSet::Read's: the next call tries other rows, or the same ones if
  // they are leased again.
  absl::StatusOr<absl::Span<const Batch>> Next();

  // Ends a Next that waits for rows, and all later ones that would, as stopped
  // (IsStopped). From any thread.
  void Stop();

  // The batches that the next call of Next returns, if it is prepared already;
  // valid as long as that.
  struct PreparedStep {
    // None: it is not prepared.
    absl::Span<const Batch> batches;
    RowLease lease;
  };
  PreparedStep Peek();

  // As StepSource's, when what Next has returned last was read.
  const std::optional<StreamPass>& pass() const { return pass_; }

  // When the thread began with the rows of what Next has returned last, and had
  // them, read and mapped; options.clock's times.
  struct Preparation {
    absl::Time begun;
    absl::Time done;
  };
  const Preparation& preparation() const { return preparation_; }

  // Rows of one epoch; 0: not known.
  int64_t epoch_rows() const { return source_->epoch_rows(); }

 private:
  // One step's, or the error that came in their place.
  struct StepBatches {
    RowLease lease;
    std::vector<Batch> batches;
    absl::Status status;
    std::optional<StreamPass> pass;
    Preparation preparation;
    // It is prepared. Guarded by mu_.
    bool is_ready = false;
  };
  struct Step {
    RowLease lease;
    // Null: nobody has begun to prepare it.
    StepBatches* batches = nullptr;
  };

  InputPipeline(std::unique_ptr<StepSource> source, const Options& options);

  // Prepares the first step that is not. Waits until there is one; false when
  // stopped.
  bool PrepareStep();
  // Free batches with the lease of that step, which is being prepared from now
  // on; null when stopped.
  StepBatches* BeginStep(StreamPass* pass);
  void Fill(StepBatches* step);
  // Without a lease there is nothing to wait for.
  absl::Status RecycleCurrent();
  void AwaitThat(bool (InputPipeline::*condition)() const)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayBeginOrStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsReadyOrStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || IsReady();
  }
  // Are the batches of the first step prepared?
  bool IsReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !steps_.empty() && steps_.front().batches != nullptr &&
           steps_.front().batches->is_ready;
  }

  // Constant after construction.
  const Options options_;

  // But for what any thread may call, of the preparing thread; of Next if there
  // is none.
  const std::unique_ptr<StepSource> source_;

  // For the thread that calls Next.
  std::optional<StreamPass> pass_;
  Preparation preparation_;
  StepBatches* current_ = nullptr;

  // The batches of each step are owned by the place that points to them:
  // free_, steps_, current_, or the preparing thread. Those of steps_ are of
  // its first ones, so that there are some for each before them.
  std::vector<StepBatches> batches_;

  mutable absl::Mutex mu_;
  // The first is the one that was free first.
  std::vector<StepBatches*> free_ ABSL_GUARDED_BY(mu_);
  // In the order of their leases.
  std::deque<Step> steps_ ABSL_GUARDED_BY(mu_);
  StreamPass set_pass_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  // Last, so that it starts after all else. Null: Next prepares.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // WORKER_INPUT_INPUT_PIPELINE_H_
