#include "worker/executor/device_update.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_buffer.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// More than lies between two tensors: an update of the one and then of the
// other goes over what is there, which nobody reads.
constexpr int64_t kMostPadding = AlignedBuffer::kAlignment / kFloatBytes;

// More than any rule has.
constexpr size_t kInlinedSlots = 4;

bool IsSame(const BlockUpdate& a, const BlockUpdate& b) {
  return a.t == b.t && a.rate_factor == b.rate_factor;
}

void CopyFrom(absl::Span<const float> run, float** to) {
  *to = std::copy(run.begin(), run.end(), *to);
}

void CopyTo(absl::Span<float> run, const float** from) {
  std::copy_n(*from, run.size(), run.begin());
  *from += run.size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceUpdate>> DeviceUpdate::Create(
    std::unique_ptr<DeviceRule> rule, int num_slots, const Options& options) {
  auto update = absl::WrapUnique(new DeviceUpdate(std::move(rule), options));
  RETURN_IF_ERROR(options.streams->MakeCurrent());
  RETURN_IF_ERROR(update->Allocate(num_slots));
  return update;
}

absl::Status DeviceUpdate::Allocate(int num_slots) {
  DeviceStreams* const streams = options_.streams;
  for (int i = 0; i < num_slots; ++i) {
    ASSIGN_OR_RETURN(auto slot,
                     streams->Allocate(size_bytes(), "slots of parameters"));
    slots_.push_back(std::move(slot));
  }
  const auto counts_bytes =
      rule_->num_counts() * static_cast<int64_t>(sizeof(int32_t));
  ASSIGN_OR_RETURN(counts_,
                   streams->Allocate(counts_bytes, "counts of gradients"));
  ASSIGN_OR_RETURN(host_counts_, PinnedBuffer::Create(streams, counts_bytes));
  if (num_slots == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(host_slots_,
                   PinnedBuffer::Create(streams, num_slots * size_bytes()));
  return absl::OkStatus();
}

int64_t DeviceUpdate::BeginOf(size_t tensor) const {
  return options_.places->offsets[tensor] / kFloatBytes;
}

float* DeviceUpdate::HostSlot(size_t slot) const {
  return reinterpret_cast<float*>(host_slots_->data() + slot * size_bytes());
}

absl::Status DeviceUpdate::Apply(const Due& due) {
  absl::InlinedVector<float*, kInlinedSlots> slots;
  for (const auto& slot : slots_) {
    slots.push_back(reinterpret_cast<float*>(slot->data()) + due.begin);
  }
  return rule_->Apply(due.update, options_.gradients + due.begin,
                      options_.values + due.begin, slots, due.end - due.begin);
}

absl::Status DeviceUpdate::Flush() {
  mu_.AssertHeld();
  has_fetched_ = false;
  if (!has_taken_) {
    return absl::FailedPreconditionError(
        "step: the parameters are not on the device; they are to be taken "
        "first");
  }
  if (failure_.ok()) failure_ = ApplyDue();
  due_.clear();
  return failure_;
}

absl::Status DeviceUpdate::ApplyDue() {
  if (due_.empty()) return absl::OkStatus();
  return options_.timer->Time({DeviceStreams::Stream::kCompute, "update"},
                              [this] {
                                mu_.AssertHeld();
                                for (const Due& due : due_)
                                  RETURN_IF_ERROR(Apply(due));
                                return absl::OkStatus();
                              });
}

void DeviceUpdate::Start() {
  absl::MutexLock lock(&mu_);
  if (!has_taken_ || !options_.streams->MakeCurrent().ok()) return;
  // Kept in failure_.
  Flush().IgnoreError();
}

absl::Status DeviceUpdate::EnqueueCheck() {
  return rule_->CountNonFinite(options_.gradients, size_bytes() / kFloatBytes,
                               reinterpret_cast<int32_t*>(counts_->data()));
}

absl::Status DeviceUpdate::FetchCheck() {
  return options_.streams->CopyToHost(host_counts_->data(), counts_->data(),
                                      check_bytes());
}

bool DeviceUpdate::gradients_are_finite() const {
  const auto* const counts =
      reinterpret_cast<const int32_t*>(host_counts_->data());
  return std::all_of(counts, counts + rule_->num_counts(),
                     [](int32_t count) { return count == 0; });
}

absl::Status DeviceUpdate::FetchValues() {
  return options_.streams->CopyToHost(options_.places->values.data(),
                                      options_.values, size_bytes());
}

absl::Status DeviceUpdate::FetchTensors() {
  absl::MutexLock lock(&mu_);
  if (has_fetched_) return absl::OkStatus();
  DeviceStreams* const streams = options_.streams;
  RETURN_IF_ERROR(streams->MakeCurrent());
  RETURN_IF_ERROR(streams->Synchronize());
  RETURN_IF_ERROR(FetchValues());
  RETURN_IF_ERROR(streams->CopyToHost(options_.places->gradients.data(),
                                      options_.gradients, size_bytes()));
  RETURN_IF_ERROR(streams->Synchronize());
  has_fetched_ = true;
  return absl::OkStatus();
}

absl::Status DeviceUpdate::CheckTensors(
    absl::Span<const ResidentTensor> tensors) const {
  const std::vector<int64_t>& wanted = options_.places->sizes_bytes;
  bool is_same = tensors.size() == wanted.size();
  for (size_t i = 0; is_same && i < tensors.size(); ++i) {
    is_same = static_cast<int64_t>(tensors[i].parameter.size()) * kFloatBytes ==
                  wanted[i] &&
              tensors[i].slots.size() == slots_.size();
  }
  if (is_same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "take the parameters to the device: wanted those of the model, ",
      wanted.size(), " with ", slots_.size(), " slots each; the shard has ",
      tensors.size(), ", or others"));
}

absl::Status DeviceUpdate::Take(absl::Span<const ResidentTensor> tensors) {
  RETURN_IF_ERROR(CheckTensors(tensors));
  absl::MutexLock lock(&mu_);
  has_taken_ = false;
  due_.clear();
  failure_ = absl::OkStatus();
  RETURN_IF_ERROR(options_.streams->MakeCurrent());
  RETURN_IF_ERROR(options_.streams->Synchronize());
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto* value =
        reinterpret_cast<float*>(options_.places->value(static_cast<int>(i)));
    CopyFrom(tensors[i].parameter, &value);
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      float* to = HostSlot(slot) + BeginOf(i);
      for (const absl::Span<float> run : tensors[i].slots[slot]) {
        CopyFrom(run, &to);
      }
    }
  }
  RETURN_IF_ERROR(SendAll());
  has_taken_ = true;
  return absl::OkStatus();
}

absl::Status DeviceUpdate::SendAll() {
  DeviceStreams* const streams = options_.streams;
  RETURN_IF_ERROR(streams->CopyToDevice(
      options_.values, options_.places->values.data(), size_bytes()));
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    RETURN_IF_ERROR(streams->CopyToDevice(slots_[slot]->data(), HostSlot(slot),
                                          size_bytes()));
  }
  return streams->Synchronize();
}

void DeviceUpdate::Update(int tensor, int64_t begin, int64_t end,
                          const BlockUpdate& update) {
  absl::MutexLock lock(&mu_);
  const int64_t at = BeginOf(tensor);
  if (!due_.empty() && IsSame(due_.back().update, update)) {
    const int64_t gap = at + begin - due_.back().end;
    if (gap >= 0 && gap < kMostPadding) {
      due_.back().end = at + end;
      return;
    }
  }
  due_.push_back({at + begin, at + end, update});
}

absl::Status DeviceUpdate::FetchAll() {
  DeviceStreams* const streams = options_.streams;
  RETURN_IF_ERROR(streams->MakeCurrent());
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(streams->Synchronize());
  RETURN_IF_ERROR(FetchValues());
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    RETURN_IF_ERROR(streams->CopyToHost(HostSlot(slot), slots_[slot]->data(),
                                        size_bytes()));
  }
  return streams->Synchronize();
}

absl::Status DeviceUpdate::WriteBack(absl::Span<const ResidentTensor> tensors) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(FetchAll());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto* value = reinterpret_cast<const float*>(
        options_.places->value(static_cast<int>(i)));
    CopyTo(tensors[i].parameter, &value);
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      const float* from = HostSlot(slot) + BeginOf(i);
      for (const absl::Span<float> run : tensors[i].slots[slot]) {
        CopyTo(run, &from);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
