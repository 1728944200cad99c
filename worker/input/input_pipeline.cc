#include "worker/input/input_pipeline.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/fill_batch.h"

namespace muster {
namespace {

// Far more than hides any reading; a limit, because each costs a buffer.
constexpr int64_t kMaxPrefetch = 1024;

DataOrder::Options OrderOptions(const InputPipeline::Options& options) {
  DataOrder::Options order;
  order.seed = options.seed;
  order.shuffle = options.shuffle;
  order.batch_size = options.batch_size;
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
  if (options.start_step < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data position: wanted 0 or more steps, found ", options.start_step));
  }
  ASSIGN_OR_RETURN(DataOrder order, DataOrder::Create(data_set->num_examples(),
                                                      OrderOptions(options)));
  return std::unique_ptr<InputPipeline>(
      new InputPipeline(data_set, options, std::move(order)));
}

InputPipeline::InputPipeline(const DataSet* data_set, const Options& options,
                             DataOrder order)
    : data_set_(data_set),
      options_(options),
      order_(std::move(order)),
      position_(options.start_step) {
  // One more than is prepared: the caller reads it.
  for (int64_t i = 0; i <= options.prefetch; ++i) {
    batches_.push_back(MakeBatch(*data_set, options.batch_size));
  }
  {
    absl::MutexLock lock(&mu_);
    for (Batch& batch : batches_) free_.push_back(&batch);
  }
  if (options.prefetch > 0) thread_ = std::thread([this] { Prepare(); });
}

InputPipeline::~InputPipeline() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<const Batch*> InputPipeline::Next() {
  if (options_.prefetch == 0) {
    FillBatch(*data_set_, order_.Rows(position_), batches_[0]);
    ++position_;
    return &batches_[0];
  }
  absl::MutexLock lock(&mu_);
  if (current_ != nullptr) free_.push_back(current_);
  mu_.Await(absl::Condition(this, &InputPipeline::HasReady));
  current_ = ready_.front();
  ready_.pop_front();
  ++position_;
  return current_;
}

void InputPipeline::Prepare() {
  for (int64_t step = options_.start_step;; ++step) {
    Batch* batch = TakeFree();
    if (batch == nullptr) return;
    FillBatch(*data_set_, order_.Rows(step), *batch);
    absl::MutexLock lock(&mu_);
    ready_.push_back(batch);
  }
}

Batch* InputPipeline::TakeFree() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &InputPipeline::HasFreeOrStopped));
  if (stopped_) return nullptr;
  Batch* batch = free_.front();
  free_.pop_front();
  return batch;
}

}  // namespace muster
