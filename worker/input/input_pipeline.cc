#include "worker/input/input_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_order.h"
#include "worker/input/indexed_rows.h"
#include "worker/input/input_threads.h"
#include "worker/input/row_weights.h"
#include "worker/input/streamed_rows.h"

namespace muster {
namespace {

// Far more than hides any reading; a limit, because each costs a buffer.
constexpr int64_t kMaxPrefetch = 1024;

// Steps prepared ahead.
int64_t StepsAhead(const InputPipeline::Options& options) {
  return (options.prefetch + options.batches_per_tower - 1) /
         options.batches_per_tower;
}

absl::Status CheckBatches(const Shape& example_shape, int64_t num_targets,
                          const InputPipeline::Options& options) {
  const int64_t rows = SaturatingProduct(
      SaturatingProduct(StepsAhead(options) + 1, options.batches_per_step),
      options.batch_size);
  const int64_t row_bytes =
      (example_shape.num_elements() + std::max<int64_t>(1, num_targets)) *
      int64_t{sizeof(float)};
  return CheckMemory(
      absl::StrCat("input: ", rows, " rows in batches, with input.prefetch=",
                   options.prefetch, ","),
      SaturatingProduct(rows, row_bytes), OwnMemoryLimit());
}

DataOrder::Options OrderOptions(const InputPipeline::Options& options) {
  DataOrder::Options order;
  order.seed = options.seed;
  order.shuffle = options.shuffle;
  order.batch_size = options.batch_size;
  order.batches_per_step = options.batches_per_step;
  order.worker_index = options.worker_index;
  order.num_workers = options.num_workers;
  return order;
}

absl::Status CheckOptions(const InputPipeline::Options& options) {
  if (options.prefetch < 0 || options.prefetch > kMaxPrefetch) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.prefetch: wanted 0 to ", kMaxPrefetch, ", found ",
                     options.prefetch));
  }
  if (options.batches_per_step < 1 || options.batches_per_tower < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input pipeline: wanted 1 or more batches a step and a tower, found ",
        options.batches_per_step, " and ", options.batches_per_tower));
  }
  if (options.threads < 1 || options.threads > kMaxInputThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.threads: wanted 1 to ", kMaxInputThreads,
                     ", found ", options.threads));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StepSource>> MakeSource(
    const InputData& data, const InputPipeline::Options& options) {
  const DataOrder::Options order = OrderOptions(options);
  if (data.data_set != nullptr) {
    RETURN_IF_ERROR(CheckBatches(data.data_set->example_shape(),
                                 data.data_set->num_targets(), options));
    return IndexedRows::Create(data.data_set, order, options.threads,
                               options.bad_records);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ExampleStream> stream, data.open_stream());
  RETURN_IF_ERROR(
      CheckBatches(stream->example_shape(), stream->num_targets(), options));
  return StreamedRows::Create(
      std::move(stream),
      {order, options.shuffle_buffer, options.threads, options.bad_records});
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputPipeline>> InputPipeline::Create(
    const InputData& data, const Options& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(std::unique_ptr<StepSource> source,
                   MakeSource(data, options));
  ASSIGN_OR_RETURN(const RowPosition start,
                   ReadRowPosition(options.start, source->order()));
  return absl::WrapUnique(new InputPipeline(std::move(source), options, start));
}

InputPipeline::InputPipeline(std::unique_ptr<StepSource> source,
                             const Options& options, const RowPosition& start)
    : options_(options), source_(std::move(source)), position_(start) {
  // One more than is prepared: the caller reads it.
  batches_.resize(StepsAhead(options) + 1);
  for (StepBatches& step : batches_) {
    for (int64_t i = 0; i < options.batches_per_step; ++i) {
      step.batches.push_back(source_->MakeBatch());
    }
  }
  {
    absl::MutexLock lock(&mu_);
    for (StepBatches& step : batches_) free_.push_back(&step);
  }
  if (options.prefetch > 0) {
    thread_ = options_.clock->StartThread([this, start] { Prepare(start); });
  }
}

InputPipeline::~InputPipeline() {
  Stop();
  thread_ = nullptr;
}

void InputPipeline::Stop() {
  source_->Stop();
  absl::MutexLock lock(&mu_);
  stopped_ = true;
}

absl::StatusOr<absl::Span<const Batch>> InputPipeline::Next() {
  if (thread_ == nullptr) {
    Fill(position_, &batches_[0]);
    const absl::Status& filled = batches_[0].status;
    if (absl::IsCancelled(filled)) return StoppedError("input");
    RETURN_IF_ERROR(filled);
    position_ = batches_[0].after;
    preparation_ = batches_[0].preparation;
    return absl::MakeConstSpan(batches_[0].batches);
  }
  absl::MutexLock lock(&mu_);
  if (current_ != nullptr) free_.push_back(std::exchange(current_, nullptr));
  AwaitThat(&InputPipeline::HasReadyOrStopped);
  if (ready_.empty() || absl::IsCancelled(ready_.front()->status)) {
    return StoppedError("input");
  }
  // An error stays at the front: whoever asks again gets it again.
  RETURN_IF_ERROR(ready_.front()->status);
  current_ = ready_.front();
  ready_.pop_front();
  position_ = current_->after;
  preparation_ = current_->preparation;
  return absl::MakeConstSpan(current_->batches);
}

InputPipeline::PreparedStep InputPipeline::Peek() {
  const absl::MutexLock lock(&mu_);
  if (ready_.empty() || !ready_.front()->status.ok()) return {};
  const StepBatches& step = *ready_.front();
  return {step.batches, source_->StepNumber(step.after)};
}

bool InputPipeline::IsAt(const DataPosition& position) const {
  const absl::StatusOr<RowPosition> at =
      ReadRowPosition(position, source_->order());
  return at.ok() && *at == position_;
}

void InputPipeline::Fill(const RowPosition& position, StepBatches* step) {
  step->preparation.begun = options_.clock->Now();
  const absl::StatusOr<RowPosition> after =
      source_->Fill(position, absl::MakeSpan(step->batches));
  if (after.ok()) NormalizeWeights(absl::MakeSpan(step->batches));
  step->preparation.done = options_.clock->Now();
  step->status = after.status();
  if (after.ok()) step->after = *after;
}

void InputPipeline::Prepare(RowPosition position) {
  while (true) {
    StepBatches* const step = TakeFree();
    if (step == nullptr) return;
    Fill(position, step);
    const bool is_last = !step->status.ok();
    position = step->after;
    absl::MutexLock lock(&mu_);
    ready_.push_back(step);
    if (is_last) return;
  }
}

InputPipeline::StepBatches* InputPipeline::TakeFree() {
  absl::MutexLock lock(&mu_);
  AwaitThat(&InputPipeline::HasFreeOrStopped);
  if (stopped_) return nullptr;
  StepBatches* const step = free_.front();
  free_.pop_front();
  return step;
}

void InputPipeline::AwaitThat(bool (InputPipeline::*condition)() const) {
  const absl::Condition holds(this, condition);
  options_.clock->Await(&mu_, holds, absl::InfiniteDuration());
}

}  // namespace muster
