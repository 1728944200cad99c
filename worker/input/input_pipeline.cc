#include "worker/input/input_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/fill_batch.h"

namespace muster {
namespace {

// Far more than hides any reading; a limit, because each costs a buffer.
constexpr int64_t kMaxPrefetch = 1024;

// Steps prepared ahead.
int64_t StepsAhead(const InputPipeline::Options& options) {
  return (options.prefetch + options.batches_per_tower - 1) /
         options.batches_per_tower;
}

// The order of an epoch, and the batches. REQUIRES: what DataOrder checks.
absl::Status CheckSize(const DataSet& data_set,
                       const InputPipeline::Options& options,
                       int64_t limit_bytes) {
  const int64_t rows = SaturatingProduct(
      SaturatingProduct(StepsAhead(options) + 1, options.batches_per_step),
      options.batch_size);
  const int64_t row_bytes =
      data_set.example_shape().num_elements() * int64_t{sizeof(float)} +
      std::max<int64_t>(1, data_set.num_targets()) * int64_t{sizeof(float)};
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("input: ", rows, " rows in batches, with input.prefetch=",
                   options.prefetch, ","),
      SaturatingProduct(rows, row_bytes), limit_bytes));
  return CheckMemory(
      absl::StrCat("input: the order of ", data_set.num_examples(),
                   " training examples"),
      SaturatingProduct(data_set.num_examples(), sizeof(int64_t)), limit_bytes);
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

}  // namespace

absl::StatusOr<std::unique_ptr<InputPipeline>> InputPipeline::Create(
    const DataSet* data_set, const Options& options) {
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
  ASSIGN_OR_RETURN(const RowPosition start, ReadRowPosition(options.start));
  ASSIGN_OR_RETURN(DataOrder order, DataOrder::Create(data_set->num_examples(),
                                                      OrderOptions(options)));
  RETURN_IF_ERROR(CheckSize(*data_set, options, OwnMemoryLimit()));
  return std::unique_ptr<InputPipeline>(
      new InputPipeline(data_set, options, start, std::move(order)));
}

InputPipeline::InputPipeline(const DataSet* data_set, const Options& options,
                             const RowPosition& start, DataOrder order)
    : data_set_(data_set),
      options_(options),
      order_(std::move(order)),
      position_(start) {
  // One more than is prepared: the caller reads it.
  batches_.resize(StepsAhead(options) + 1);
  for (StepBatches& step : batches_) {
    for (int64_t i = 0; i < options.batches_per_step; ++i) {
      step.batches.push_back(MakeBatch(*data_set, options.batch_size));
    }
  }
  {
    absl::MutexLock lock(&mu_);
    for (StepBatches& step : batches_) free_.push_back(&step);
  }
  if (options.prefetch > 0) {
    thread_ = std::thread([this, start] { Prepare(start); });
  }
}

InputPipeline::~InputPipeline() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<absl::Span<const Batch>> InputPipeline::Next() {
  if (options_.prefetch == 0) {
    Fill(position_, &batches_[0]);
    RETURN_IF_ERROR(batches_[0].status);
    position_ = order_.After(position_);
    return absl::MakeConstSpan(batches_[0].batches);
  }
  absl::MutexLock lock(&mu_);
  if (current_ != nullptr) free_.push_back(std::exchange(current_, nullptr));
  mu_.Await(absl::Condition(this, &InputPipeline::HasReady));
  // An error stays at the front: whoever asks again gets it again.
  RETURN_IF_ERROR(ready_.front()->status);
  current_ = ready_.front();
  ready_.pop_front();
  position_ = order_.After(position_);
  return absl::MakeConstSpan(current_->batches);
}

absl::Span<const Batch> InputPipeline::Peek() {
  const absl::MutexLock lock(&mu_);
  if (ready_.empty() || !ready_.front()->status.ok()) return {};
  return absl::MakeConstSpan(ready_.front()->batches);
}

bool InputPipeline::IsAt(const DataPosition& position) const {
  const absl::StatusOr<RowPosition> at = ReadRowPosition(position);
  return at.ok() && *at == position_;
}

void InputPipeline::Fill(const RowPosition& position, StepBatches* step) {
  const absl::Span<const int64_t> rows = order_.Rows(position);
  const int64_t epoch = order_.BeginOf(position).epoch;
  step->status = absl::OkStatus();
  for (size_t i = 0; i < step->batches.size() && step->status.ok(); ++i) {
    step->status = FillBatch(
        *data_set_, rows.subspan(i * options_.batch_size, options_.batch_size),
        epoch, step->batches[i]);
  }
}

void InputPipeline::Prepare(RowPosition position) {
  for (;; position = order_.After(position)) {
    StepBatches* const step = TakeFree();
    if (step == nullptr) return;
    Fill(position, step);
    absl::MutexLock lock(&mu_);
    ready_.push_back(step);
    if (!step->status.ok()) return;
  }
}

InputPipeline::StepBatches* InputPipeline::TakeFree() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &InputPipeline::HasFreeOrStopped));
  if (stopped_) return nullptr;
  StepBatches* const step = free_.front();
  free_.pop_front();
  return step;
}

}  // namespace muster
