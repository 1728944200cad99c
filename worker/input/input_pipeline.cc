#include "worker/input/input_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/process/memory_limit.h"
#include "common/rows/row_ranges.h"
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

absl::Status CheckOptions(const InputPipeline::Options& options) {
  if (options.prefetch < 0 || options.prefetch > kMaxPrefetch) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.prefetch: wanted 0 to ", kMaxPrefetch, ", found ",
                     options.prefetch));
  }
  if (options.batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.batch_size: wanted a positive number, found ",
                     options.batch_size));
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
  if (data.data_set != nullptr) {
    RETURN_IF_ERROR(CheckBatches(data.data_set->example_shape(),
                                 data.data_set->num_targets(), options));
    return IndexedRows::Create(data.data_set, options);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ExampleStream> stream, data.open_stream());
  RETURN_IF_ERROR(
      CheckBatches(stream->example_shape(), stream->num_targets(), options));
  return std::make_unique<StreamedRows>(std::move(stream), options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputPipeline>> InputPipeline::Create(
    const InputData& data, const Options& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(std::unique_ptr<StepSource> source,
                   MakeSource(data, options));
  return absl::WrapUnique(new InputPipeline(std::move(source), options));
}

InputPipeline::InputPipeline(std::unique_ptr<StepSource> source,
                             const Options& options)
    : options_(options), source_(std::move(source)) {
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
    thread_ = options_.clock->StartThread([this] {
      while (PrepareStep()) {
      }
    });
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

void InputPipeline::SetLeases(absl::Span<const RowLease> leases,
                              const StreamPass& pass) {
  // Batches for the steps before one that keeps its own.
  const size_t most = batches_.size() - (current_ != nullptr ? 1 : 0);
  absl::MutexLock lock(&mu_);
  set_pass_ = pass;
  std::deque<Step> former;
  std::swap(former, steps_);
  auto from = former.begin();
  for (const RowLease& lease : leases) {
    steps_.push_back({lease});
    const auto same = std::find_if(
        from, former.end(), [&](const Step& s) { return s.lease == lease; });
    if (same == former.end() || steps_.size() > most) continue;
    steps_.back().batches = std::exchange(same->batches, nullptr);
    from = same + 1;
  }
  for (const Step& step : former) {
    // The thread finds itself that what it prepares is not wanted.
    if (step.batches == nullptr || !step.batches->is_ready) continue;
    free_.push_back(step.batches);
  }
}

int64_t InputPipeline::num_leases() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(steps_.size());
}

absl::Status InputPipeline::RecycleCurrent() {
  absl::MutexLock lock(&mu_);
  if (current_ != nullptr) free_.push_back(std::exchange(current_, nullptr));
  if (!steps_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "input: wanted rows that are leased for a step, found none");
}

absl::StatusOr<absl::Span<const Batch>> InputPipeline::Next() {
  RETURN_IF_ERROR(RecycleCurrent());
  if (thread_ == nullptr) PrepareStep();
  absl::MutexLock lock(&mu_);
  AwaitThat(&InputPipeline::IsReadyOrStopped);
  if (!IsReady()) return StoppedError("input");
  StepBatches* const step = steps_.front().batches;
  steps_.pop_front();
  current_ = step;
  if (absl::IsCancelled(step->status)) return StoppedError("input");
  RETURN_IF_ERROR(step->status);
  pass_ = step->pass;
  preparation_ = step->preparation;
  return absl::MakeConstSpan(step->batches);
}

InputPipeline::PreparedStep InputPipeline::Peek() {
  const absl::MutexLock lock(&mu_);
  if (!IsReady()) return {};
  const StepBatches& step = *steps_.front().batches;
  if (!step.status.ok()) return {};
  return {step.batches, step.lease};
}

bool InputPipeline::PrepareStep() {
  StreamPass pass;
  StepBatches* const step = BeginStep(&pass);
  if (step == nullptr) return false;
  source_->SetPass(pass);
  Fill(step);
  absl::MutexLock lock(&mu_);
  step->is_ready =
      std::any_of(steps_.begin(), steps_.end(),
                  [&](const Step& s) { return s.batches == step; });
  if (!step->is_ready) free_.push_back(step);
  return true;
}

InputPipeline::StepBatches* InputPipeline::BeginStep(StreamPass* pass) {
  absl::MutexLock lock(&mu_);
  AwaitThat(&InputPipeline::MayBeginOrStopped);
  if (stopped_) return nullptr;
  *pass = set_pass_;
  const auto step =
      std::find_if(steps_.begin(), steps_.end(),
                   [](const Step& s) { return s.batches == nullptr; });
  step->batches = free_.front();
  free_.erase(free_.begin());
  step->batches->lease = step->lease;
  step->batches->is_ready = false;
  return step->batches;
}

bool InputPipeline::MayBeginOrStopped() const {
  return stopped_ || (!free_.empty() &&
                      std::any_of(steps_.begin(), steps_.end(), [](auto& s) {
                        return s.batches == nullptr;
                      }));
}

void InputPipeline::Fill(StepBatches* step) {
  step->preparation.begun = options_.clock->Now();
  step->status = source_->Fill(step->lease, absl::MakeSpan(step->batches));
  if (step->status.ok()) NormalizeWeights(absl::MakeSpan(step->batches));
  step->preparation.done = options_.clock->Now();
  step->pass = source_->pass();
}

void InputPipeline::AwaitThat(bool (InputPipeline::*condition)() const) {
  const absl::Condition holds(this, condition);
  options_.clock->Await(&mu_, holds, absl::InfiniteDuration());
}

}  // namespace muster
