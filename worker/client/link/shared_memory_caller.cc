#include "worker/client/link/shared_memory_caller.h"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame_fields.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/doorbell.h"

namespace muster {
class SharedMemoryCaller::SlotLease {
 public:
  SlotLease(std::shared_ptr<SharedMemoryCaller> caller, uint32_t slot)
      : caller_(std::move(caller)), slot_(slot) {}
  ~SlotLease() { caller_->ReleaseSlot(slot_); }

  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;

 private:
  const std::shared_ptr<SharedMemoryCaller> caller_;
  const uint32_t slot_;
};

SharedMemoryCaller::SharedMemoryCaller(PeerName peer, SharedPeer shared,
                                       const Clock* clock)
    : peer_(std::move(peer)),
      shared_(std::move(shared)),
      clock_(clock),
      answers_(&RingsOf(shared_.segment.data())->answers),
      requests_(&RingsOf(shared_.segment.data())->requests) {
  for (uint32_t slot = 0; slot < kNumSlots; ++slot) free_.push_back(slot);
}

absl::Status SharedMemoryCaller::Named(absl::StatusCode code,
                                       absl::string_view words) const {
  return absl::Status(
      code, absl::StrCat(peer_.task, " at ", peer_.address, ": ", words));
}

void SharedMemoryCaller::Shutdown() {
  shutdown(shared_.socket.get(), SHUT_RDWR);
}

// ---- Requests -----------------------------------------------------------

void SharedMemoryCaller::Call(DataMethod method, SlotMessage request,
                              absl::Time deadline, DoneCallback done) {
  if (!FitsSlot(request.fields.size(), request.data.size())) {
    return done(
        Named(absl::StatusCode::kResourceExhausted,
              absl::StrCat("a request of ", request.fields.size(), " and ",
                           request.data.size(),
                           " bytes of tensors; shared memory takes at most ",
                           kSlotFieldsBytes, " and ", kSlotDataBytes)));
  }
  WaitingCall call{method, std::move(request), deadline, std::move(done)};
  std::optional<uint32_t> slot;
  absl::Status lost;
  {
    absl::MutexLock lock(&mu_);
    lost = lost_;
    if (lost.ok()) {
      slot = AcquireSlot();
      if (!slot.has_value()) {
        waiting_.push_back(std::move(call));
        return;
      }
    }
  }
  if (!lost.ok()) return call.done(lost);
  Send(*slot, std::move(call));
}

std::optional<uint32_t> SharedMemoryCaller::AcquireSlot() {
  if (free_.empty()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].state = SlotState::kHeld;
  return slot;
}

void SharedMemoryCaller::Send(uint32_t slot, WaitingCall call) {
  const absl::Duration left = call.deadline - clock_->Now();
  if (left <= absl::ZeroDuration()) {
    ReleaseSlot(slot);
    return call.done(Named(absl::StatusCode::kDeadlineExceeded,
                           "the deadline passed before the request was sent"));
  }
  const bool is_finite =
      WriteSlotAndLook(call.request, shared_.segment.data(), slot);
  const RingEntry entry = {slot,
                           static_cast<uint32_t>(call.method),
                           static_cast<uint32_t>(call.request.fields.size()),
                           static_cast<uint32_t>(call.request.data.size()),
                           TimeoutMs(left),
                           is_finite ? 1u : 0u};
  // The caller's memory need not wait for the answer.
  call.request.data.Clear();
  bool wants_bell = false;
  absl::Status lost;
  {
    absl::MutexLock lock(&mu_);
    lost = lost_;
    if (lost.ok()) {
      slots_[slot] = {SlotState::kInFlight, call.deadline,
                      std::move(call.done)};
      wants_bell = requests_.Publish(entry);
    }
  }
  if (!lost.ok()) return call.done(lost);
  if (wants_bell) RingBell(shared_.socket);
}

void SharedMemoryCaller::ReleaseSlot(uint32_t slot) {
  std::optional<WaitingCall> next;
  {
    absl::MutexLock lock(&mu_);
    if (waiting_.empty()) {
      slots_[slot].state = SlotState::kFree;
      free_.push_back(slot);
    } else {
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }
  if (next.has_value()) Send(slot, *std::move(next));
}

// ---- Answers ------------------------------------------------------------

absl::Status SharedMemoryCaller::Run() {
  absl::Status lost;
  absl::Time next_expiry = clock_->Now() + kTick;
  while (lost.ok()) {
    const RingEvent event = AwaitEntry(&answers_, shared_.socket, kTick);
    if (event == RingEvent::kPeerGone) {
      lost = absl::UnavailableError("the peer closed the shared memory");
    } else if (event == RingEvent::kEntry) {
      const absl::StatusOr<std::optional<RingEntry>> entry = answers_.Take();
      lost = entry.status();
      if (entry.ok() && entry->has_value()) lost = OnAnswer(**entry);
    }
    const absl::Time now = clock_->Now();
    if (now < next_expiry) continue;
    Expire(now);
    next_expiry = now + kTick;
  }
  Shutdown();
  return lost;
}

absl::Status SharedMemoryCaller::OnAnswer(const RingEntry& entry) {
  if (entry.slot >= kNumSlots ||
      !FitsSlot(entry.fields_bytes, entry.data_bytes) ||
      entry.kind > kLastStatusCode) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: an answer of ", entry.fields_bytes,
                     " and ", entry.data_bytes, " bytes in slot ", entry.slot,
                     " with status ", entry.kind, " makes no sense"));
  }
  DoneCallback done;
  {
    absl::MutexLock lock(&mu_);
    Slot& slot = slots_[entry.slot];
    if (slot.state != SlotState::kInFlight &&
        slot.state != SlotState::kExpired) {
      return absl::InvalidArgumentError(
          absl::StrCat("shared memory: an answer in slot ", entry.slot,
                       ", where nothing was asked"));
    }
    slot.state = SlotState::kHeld;
    done = std::exchange(slot.done, nullptr);
  }
  if (done == nullptr) {
    ReleaseSlot(entry.slot);
  } else {
    Deliver(entry, done);
  }
  return absl::OkStatus();
}

void SharedMemoryCaller::Deliver(const RingEntry& entry,
                                 const DoneCallback& done) {
  // Copied first: what the ps writes there later changes nothing. The values it
  // might as well have sent otherwise.
  SlotMessage answer;
  answer.fields.assign(FieldsOf(shared_.segment.data(), entry.slot),
                       entry.fields_bytes);
  const auto lease =
      std::make_shared<SlotLease>(shared_from_this(), entry.slot);
  if (entry.kind != 0) return done(StatusFromBytes(answer.fields));
  if (entry.data_bytes > 0) {
    answer.data = absl::MakeCordFromExternal(
        {DataOf(shared_.segment.data(), entry.slot), entry.data_bytes},
        [lease] {});
  }
  done(std::move(answer));
}

void SharedMemoryCaller::Expire(absl::Time now) {
  std::vector<DoneCallback> late;
  {
    absl::MutexLock lock(&mu_);
    for (Slot& slot : slots_) {
      if (slot.state != SlotState::kInFlight || slot.deadline > now) continue;
      slot.state = SlotState::kExpired;
      late.push_back(std::exchange(slot.done, nullptr));
    }
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (it->deadline > now) {
        ++it;
        continue;
      }
      late.push_back(std::move(it->done));
      it = waiting_.erase(it);
    }
  }
  for (const DoneCallback& done : late) {
    done(Named(absl::StatusCode::kDeadlineExceeded,
               "no answer in time through shared memory"));
  }
}

void SharedMemoryCaller::Fail(const absl::Status& lost) {
  // To who called it is a peer that went away, whatever it did.
  const absl::Status why =
      Named(absl::StatusCode::kUnavailable, lost.message());
  std::vector<DoneCallback> calls;
  {
    absl::MutexLock lock(&mu_);
    lost_ = why;
    for (Slot& slot : slots_) {
      if (slot.state != SlotState::kInFlight) continue;
      slot.state = SlotState::kExpired;
      calls.push_back(std::exchange(slot.done, nullptr));
    }
    for (WaitingCall& call : waiting_) calls.push_back(std::move(call.done));
    waiting_.clear();
  }
  for (const DoneCallback& done : calls) done(why);
}

}  // namespace muster
