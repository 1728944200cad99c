#ifndef WORKER_CLIENT_LINK_STREAM_CALLER_H_
#define WORKER_CLIENT_LINK_STREAM_CALLER_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/frame/exchange_codec.h"
#include "common/rpc/peer_channel.h"
#include "worker/client/link/alive_count.h"
#include "worker/client/link/exchange_stream.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/timer_queue.h"

namespace muster {

// Calls to one ps that carry tensors, as bytes, over one long-lived stream. The
// first call opens it, and the first one after it broke opens another; nothing
// is sent again by itself. Any number of calls may be on their way: the ps
// reads as many as it likes, the others wait here. Thread-safe; no call blocks.
//
// `done` is called exactly once, with no lock held, on a gRPC thread or the
// caller's own timer's, possibly before Call returns. Errors: what the peer
// answered, its message unchanged; Unavailable with a readable cause
// (peer_failure.h) for every call on a stream that breaks; DeadlineExceeded;
// ResourceExhausted for a request over the size of a part and its header. A
// request that the ps has not even read when its deadline passes breaks the
// stream: gRPC must let go of the caller's memory.
class StreamCaller {
 public:
  using BytesCallback = ExchangeStream::BytesCallback;

  StreamCaller(PeerName peer, PeerChannel::OpenFunction open);
  // As above, in a test's time. `clock` must live longer.
  StreamCaller(PeerName peer, PeerChannel::OpenFunction open,
               const Clock* clock, std::unique_ptr<Timers> timers);
  // Cancels what is on its way and waits until every `done` has returned and
  // nothing holds the channel any more. REQUIRES: not called from a `done`.
  ~StreamCaller();

  StreamCaller(const StreamCaller&) = delete;
  StreamCaller& operator=(const StreamCaller&) = delete;

  // `deadline` is of the clock: MonotonicClock, where none was given.
  void Call(const ExchangeBody& request, absl::Time deadline,
            const BytesCallback& done);

 private:
  std::shared_ptr<ExchangeStream> MakeStream();
  // The next call opens another one.
  void Forget(ExchangeStream* stream);
  // Sees to it that calls expire at `deadline`.
  void Arm(absl::Time deadline);
  void OnTimer(absl::Time armed);

  // Constant after construction.
  const PeerName peer_;
  const Clock* const clock_;

  // Own synchronisation.
  PeerChannel channel_;
  // The streams that gRPC holds something of.
  AliveCount alive_;

  absl::Mutex mu_;
  // Null before the first, and when it has ended.
  std::shared_ptr<ExchangeStream> stream_ ABSL_GUARDED_BY(mu_);
  // When the timer that counts fires; others are ignored.
  absl::Time armed_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();

  // Last: its thread uses all of the above.
  const std::unique_ptr<Timers> timers_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_STREAM_CALLER_H_
