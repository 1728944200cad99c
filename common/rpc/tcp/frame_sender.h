#ifndef COMMON_RPC_TCP_FRAME_SENDER_H_
#define COMMON_RPC_TCP_FRAME_SENDER_H_

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/frame_header.h"

namespace muster {

// The sending side of a TCP connection: frames on their way, in the order in
// which they were added. Their data are sent from where they lie, and let go
// when the socket has them. Thread-safe.
class FrameSender {
 public:
  enum class Progress {
    // Nothing is left, or another thread sends what is.
    kDone,
    // The rest has to wait until the socket can be written to.
    kSocketFull,
  };

  FrameSender() = default;
  FrameSender(const FrameSender&) = delete;
  FrameSender& operator=(const FrameSender&) = delete;

  // Pump sends it. The header's sizes need not be set.
  void Add(FrameHeader header, absl::string_view fields, absl::Cord data);

  // Sends without blocking; of several threads one does so, also what the
  // others have added. With a channel that is not duplex: the receiving thread
  // alone. Errors: the channel's.
  absl::StatusOr<Progress> Pump(ByteChannel* channel);

  // Frames of which not every byte was accepted by the channel.
  bool empty() const;
  // Whether one of them is of this call.
  bool Holds(uint64_t call) const;
  // Lets go of those of this call that do not come next.
  void Drop(uint64_t call);
  // Bytes that the channel has accepted so far.
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Outgoing {
    uint64_t call = 0;
    // The header and the fields.
    std::string head;
    absl::Cord data;
    // The pieces that were not sent, of the two.
    std::vector<iovec> pieces;
    size_t piece = 0;
  };

  // The first one; null if there is none.
  Outgoing* Front() ABSL_LOCKS_EXCLUDED(mu_);
  // All that is there, for the one thread that pumps.
  absl::StatusOr<Progress> SendFrames(ByteChannel* channel);
  // False if the socket is full.
  absl::StatusOr<bool> SendAll(ByteChannel* channel, Outgoing* frame);
  static void Cut(Outgoing* frame);
  static void Advance(size_t bytes, Outgoing* frame);
  // Unless `to_the_end` and others have added frames: returns whether it does.
  bool StopPumping(bool to_the_end);

  mutable absl::Mutex mu_;
  // An element stays where it is while others come and go behind it.
  std::list<Outgoing> frames_ ABSL_GUARDED_BY(mu_);
  bool is_pumping_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<uint64_t> sent_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_RPC_TCP_FRAME_SENDER_H_
