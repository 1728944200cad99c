#ifndef COMMON_RPC_TCP_FRAME_SENDER_H_
#define COMMON_RPC_TCP_FRAME_SENDER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
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

  // The first one; null if there is none, and this thread pumps no more.
  Outgoing* Front() ABSL_LOCKS_EXCLUDED(mu_);
  // False if the socket is full.
  static absl::StatusOr<bool> SendAll(ByteChannel* channel, Outgoing* frame);
  static void Cut(Outgoing* frame);
  static void Advance(size_t bytes, Outgoing* frame);
  void StopPumping();

  mutable absl::Mutex mu_;
  // References to its elements stay while others are added behind.
  std::deque<Outgoing> frames_ ABSL_GUARDED_BY(mu_);
  bool is_pumping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // COMMON_RPC_TCP_FRAME_SENDER_H_
