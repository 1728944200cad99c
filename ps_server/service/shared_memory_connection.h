#ifndef PS_SERVER_SERVICE_SHARED_MEMORY_CONNECTION_H_
#define PS_SERVER_SERVICE_SHARED_MEMORY_CONNECTION_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/parameter_link.h"
#include "common/shared_memory/memory_segment.h"
#include "common/shared_memory/slot_message.h"
#include "common/shared_memory/slot_ring.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/shard_server.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// One worker's requests through a segment: the fields of each message are
// copied out of it, once, and then checked as those of gRPC's; tensor bytes are
// used where they lie. Requests become calls of the shard, answers are written
// to the slots of their requests.
//
// Shared by the thread that serves and by the shard's callbacks, which may
// come after the worker is gone; with the last of them the memory goes.
class SharedMemoryConnection
    : public std::enable_shared_from_this<SharedMemoryConnection> {
 public:
  struct Parts {
    // Not owned; these, and the entrance, outlive every callback of the shard.
    ShardServer* shard = nullptr;
    const Clock* clock = nullptr;
    // Each of its requests is checked.
    Caller caller;
    const Entrance* entrance = OpenEntrance();
  };

  SharedMemoryConnection(Parts parts, FileDescriptor socket,
                         MemorySegment segment);

  SharedMemoryConnection(const SharedMemoryConnection&) = delete;
  SharedMemoryConnection& operator=(const SharedMemoryConnection&) = delete;

  // Serves until the worker is gone (OK), breaks the rules (InvalidArgument) or
  // has a certificate that has ended (Unavailable), or Shutdown (OK). One
  // thread.
  absl::Status Serve();

  // Ends Serve. Thread-safe.
  void Shutdown();

 private:
  class Call;

  // Passes the next request to the shard, if there is one.
  absl::Status TakeRequest();
  // Slot, kind and size make sense, and the slot is not being answered.
  absl::Status Accept(const RingEntry& entry);
  // A request: a copy of its fields, and its tensor bytes where they lie.
  SlotMessage ReadRequest(const RingEntry& entry);

  // The slot, for the values of its answer.
  ValueMemory SlotMemory(uint32_t slot);
  // A callback for the shard, which answers in `slot`.
  template <typename Reply>
  ReplyCallback<Reply> AnswerIn(uint32_t slot);
  void Answer(uint32_t slot, const SlotMessage& answer);
  void AnswerError(uint32_t slot, const absl::Status& status);
  // Hands the slot back to the worker.
  void Publish(const RingEntry& entry);

  // Constant after construction.
  const Parts parts_;
  const FileDescriptor socket_;
  const MemorySegment segment_;

  // Used by Serve only.
  RingReader requests_;
  // The error of a TakeRequest between others' requests.
  absl::Status failure_;

  absl::Mutex mu_;
  RingWriter answers_ ABSL_GUARDED_BY(mu_);
  // Requests that the shard has.
  std::array<bool, kNumSlots> in_service_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SHARED_MEMORY_CONNECTION_H_
