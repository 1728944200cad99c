#ifndef WORKER_CLIENT_LINK_EXCHANGE_STREAM_H_
#define WORKER_CLIENT_LINK_EXCHANGE_STREAM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/frame/exchange_codec.h"
#include "common/rpc/peer_channel.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "worker/client/link/alive_count.h"
#include "worker/client/link/peer_failure.h"

namespace muster {

// One Exchange stream to one peer (proto/parameter_service.proto), from its
// opening to its end. Requests are written one after another in the order of
// Send; answers are delivered as they come. Thread-safe; nothing blocks.
//
// Shared: gRPC holds it until its last callback, whoever else does.
class ExchangeStream
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public std::enable_shared_from_this<ExchangeStream> {
 public:
  using BytesCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  struct Parts {
    // All outlive `done`.
    const PeerName* peer = nullptr;
    const Clock* clock = nullptr;
    PeerChannel* channel = nullptr;
    AliveCount* alive = nullptr;
    // Called last, after the end. Who holds the stream is to let go of it: with
    // it goes what gRPC has not sent of a call.
    std::function<void(ExchangeStream*)> done;
  };

  explicit ExchangeStream(Parts parts);

  ExchangeStream(const ExchangeStream&) = delete;
  ExchangeStream& operator=(const ExchangeStream&) = delete;

  // Opens it. Once; Send may come before.
  void Open();

  // Sends a call, unless the stream has ended (false; `done` is not called).
  // `done` is called exactly once, with no lock held, on a gRPC thread or the
  // one that calls Expire. Errors: what the peer answered; Unavailable or the
  // peer's refusal when the stream ends.
  bool Send(const ExchangeBody& request, absl::Time deadline,
            const BytesCallback& done);

  // Fails the calls whose deadline has passed, and returns the earliest one of
  // the others. If the peer did not even read the request in that time, the
  // stream ends, so that nothing refers to the caller's memory any more.
  absl::Time Expire();

  // Ends it; every call ends with Cancelled.
  void Cancel();

 private:
  struct Call {
    absl::Time deadline;
    BytesCallback done;
  };
  struct Request {
    uint64_t call = 0;
    ExchangeBody body;
  };

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // Writes the next request, if there is one. REQUIRES: writing_ is true, set
  // by this thread or for it.
  void WriteNext();
  // The bytes of a request; nothing if its deadline has passed or nobody waits
  // for it any more.
  grpc::ByteBuffer Encode(const Request& request);
  void Deliver(const grpc::ByteBuffer& bytes);
  // The error of the calls that the stream's end ends.
  absl::Status WhyEnded(const grpc::Status& status);

  // First: see there.
  const AliveCount::Mark alive_;

  // Constant after construction.
  const Parts parts_;
  const std::shared_ptr<grpc::Channel> channel_;

  // Own synchronisation.
  grpc::ClientContext context_;
  // Used by the one that reads, or writes, in turn.
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;

  absl::Mutex mu_;
  // From Open to OnDone.
  std::shared_ptr<ExchangeStream> self_ ABSL_GUARDED_BY(mu_);
  uint64_t last_call_ ABSL_GUARDED_BY(mu_) = 0;
  // Sent and not answered.
  absl::flat_hash_map<uint64_t, Call> calls_ ABSL_GUARDED_BY(mu_);
  std::deque<Request> queue_ ABSL_GUARDED_BY(mu_);
  // A thread writes, or will; first the one that opens.
  bool writing_ ABSL_GUARDED_BY(mu_) = true;
  // The call that is being written.
  uint64_t written_call_ ABSL_GUARDED_BY(mu_) = 0;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  // Why this end gave the stream up; OK if it did not.
  absl::Status given_up_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_EXCHANGE_STREAM_H_
