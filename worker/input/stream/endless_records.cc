#include "worker/input/stream/endless_records.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/process/memory_limit.h"
#include "worker/input/map/row_random.h"

namespace muster {
namespace {

// Of RowRandom: no stage of input.map has it.
constexpr int64_t kShuffle = -1;
// So that memory is not asked about for each record.
constexpr int64_t kCheckedStep = int64_t{16} << 20;

int64_t SizeOf(const StreamRecord& record) {
  return static_cast<int64_t>(sizeof(record) + record.bytes.size());
}

}  // namespace

EndlessRecords::EndlessRecords(std::unique_ptr<ExampleStream> stream,
                               uint64_t seed, int64_t buffer)
    : stream_(std::move(stream)),
      seed_(seed),
      capacity_(static_cast<size_t>(std::max<int64_t>(buffer, 1))) {}

absl::Status EndlessRecords::Begin(int64_t epoch) {
  ahead_.clear();
  return BeginPass(epoch);
}

absl::Status EndlessRecords::BeginPass(int64_t epoch) {
  RETURN_IF_ERROR(stream_->Begin());
  begun_ = true;
  epoch_ = epoch;
  place_ = 0;
  held_ = 0;
  bytes_ = 0;
  while (held_ < capacity_) {
    if (held_ == buffer_.size()) buffer_.emplace_back();
    ASSIGN_OR_RETURN(const bool more, Refill(&buffer_[held_]));
    if (!more) break;
    ++held_;
  }
  if (held_ > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input.stream: wanted rows, found none in '",
                   stream_->Files().front(), "' and the files after it"));
}

absl::StatusOr<bool> EndlessRecords::Refill(StreamRecord* record) {
  if (stopped_.load(std::memory_order_relaxed)) {
    return StoppedError("reading a stream");
  }
  ASSIGN_OR_RETURN(const bool more, stream_->Next(record));
  if (!more) return false;
  bytes_ += SizeOf(*record);
  if (bytes_ <= checked_bytes_) return true;
  checked_bytes_ = bytes_ + kCheckedStep;
  RETURN_IF_ERROR(
      CheckMemory(absl::StrCat("input.shuffle_buffer: ", capacity_, " rows"),
                  checked_bytes_, OwnMemoryLimit()));
  return true;
}

absl::StatusOr<bool> EndlessRecords::NextInPass(OrderedRecord* next) {
  if (held_ == 0) return false;
  RowRandom random = RowRandom(seed_, epoch_, place_).ForStage(kShuffle);
  StreamRecord& chosen = buffer_[random.Below(static_cast<int64_t>(held_))];
  bytes_ -= SizeOf(chosen);
  std::swap(next->record, chosen);
  next->epoch = epoch_;
  next->place = place_++;
  ASSIGN_OR_RETURN(const bool more, Refill(&chosen));
  if (!more) std::swap(chosen, buffer_[--held_]);
  return true;
}

absl::Status EndlessRecords::Read(OrderedRecord* next) {
  if (!begun_) RETURN_IF_ERROR(BeginPass(0));
  ASSIGN_OR_RETURN(const bool more, NextInPass(next));
  if (more) return absl::OkStatus();
  RETURN_IF_ERROR(BeginPass(epoch_ + 1));
  return NextInPass(next).status();
}

absl::Status EndlessRecords::Next(OrderedRecord* next) {
  if (ahead_.empty()) return Read(next);
  std::swap(*next, ahead_.front());
  ahead_.pop_front();
  return absl::OkStatus();
}

absl::StatusOr<const OrderedRecord*> EndlessRecords::Peek(size_t ahead) {
  while (ahead_.size() <= ahead) {
    ahead_.emplace_back();
    const absl::Status status = Read(&ahead_.back());
    if (status.ok()) continue;
    ahead_.pop_back();
    return status;
  }
  return &ahead_[ahead];
}

}  // namespace muster
