#ifndef WORKER_CLIENT_LINK_SHARED_MEMORY_CALLER_H_
#define WORKER_CLIENT_LINK_SHARED_MEMORY_CALLER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/frame/data_method.h"
#include "common/shared_memory/handshake.h"
#include "common/shared_memory/slot_message.h"
#include "common/shared_memory/slot_ring.h"
#include "worker/client/link/peer_failure.h"

namespace muster {

// Unary calls to one ps through a segment of shared memory; over one
// connection, which ends with either process. A request is copied into a slot
// before Call returns, unless all slots are in use: then it waits for one. An
// answer is read in its slot, which is free again when nobody refers to the
// answer's bytes any more.
//
// Thread-safe; no call blocks. `done` is called exactly once, with no lock of
// this class held: on the thread of Run and Fail, on the caller's if the call
// fails at once, or, if a call that waited for a slot can no longer be sent, on
// that of who drops the last reference to another call's answer: the slot is
// handed on there. So answers are dropped without a lock that a `done` takes.
// Shared, because answers may outlive their reader.
//
// Errors: what the peer answered, its message unchanged; Unavailable when the
// connection is lost; DeadlineExceeded, up to kTick late; ResourceExhausted
// for a request that is larger than a slot.
class SharedMemoryCaller
    : public std::enable_shared_from_this<SharedMemoryCaller> {
 public:
  using DoneCallback = std::function<void(absl::StatusOr<SlotMessage>)>;
  static constexpr absl::Duration kTick = absl::Milliseconds(250);

  // `clock` (monotonic) outlives this.
  SharedMemoryCaller(PeerName peer, SharedPeer shared, const Clock* clock);

  SharedMemoryCaller(const SharedMemoryCaller&) = delete;
  SharedMemoryCaller& operator=(const SharedMemoryCaller&) = delete;

  void Call(DataMethod method, SlotMessage request, absl::Time deadline,
            DoneCallback done);

  // Delivers answers until the connection is lost, and says why it was lost.
  // Calls wait on: Fail comes next. Once, on a thread of the owner's.
  absl::Status Run();

  // Fails every call, those to come too, because of what Run said. Apart, so
  // that who is told has no way back to this connection.
  void Fail(const absl::Status& lost);

  // Ends Run.
  void Shutdown();

 private:
  enum class SlotState {
    kFree,
    // Its request is being written, or its answer being read.
    kHeld,
    // The ps has it.
    kInFlight,
    // The ps has it, but nobody waits any more.
    kExpired,
  };
  struct Slot {
    SlotState state = SlotState::kFree;
    absl::Time deadline;
    DoneCallback done;
  };
  struct WaitingCall {
    DataMethod method;
    SlotMessage request;
    absl::Time deadline;
    DoneCallback done;
  };
  // Gives a slot back when it goes.
  class SlotLease;

  // A free slot, now kHeld; none if all are in use.
  std::optional<uint32_t> AcquireSlot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the call through a slot that is kHeld.
  void Send(uint32_t slot, WaitingCall call);
  // Sends a waiting call through a slot that is kHeld, or frees it.
  void ReleaseSlot(uint32_t slot);

  // Errors: InvalidArgument for an entry that makes no sense.
  absl::Status OnAnswer(const RingEntry& entry);
  void Deliver(const RingEntry& entry, const DoneCallback& done);
  // Fails the calls whose deadline has passed.
  void Expire(absl::Time now);
  absl::Status Named(absl::StatusCode code, absl::string_view words) const;

  // Constant after construction.
  const PeerName peer_;
  const SharedPeer shared_;
  const Clock* const clock_;

  // Used by Run only.
  RingReader answers_;

  absl::Mutex mu_;
  RingWriter requests_ ABSL_GUARDED_BY(mu_);
  std::array<Slot, kNumSlots> slots_ ABSL_GUARDED_BY(mu_);
  // The one that was used last is taken first: it is in the caches.
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mu_);
  std::deque<WaitingCall> waiting_ ABSL_GUARDED_BY(mu_);
  // Why the connection is lost; OK while it is not.
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_SHARED_MEMORY_CALLER_H_
