#ifndef WORKER_CLIENT_LINK_UNARY_CALLER_H_
#define WORKER_CLIENT_LINK_UNARY_CALLER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/link.h"
#include "common/rpc/method.h"
#include "common/rpc/peer_channel.h"
#include "common/rpc/peer_check.h"
#include "grpcpp/support/byte_buffer.h"
#include "worker/client/link/alive_count.h"
#include "worker/client/link/peer_failure.h"

namespace muster {

// Unary gRPC calls to one peer over one channel at a time, as bytes: requests
// and replies that carry tensors must not pass through protobuf objects, and
// one path serves the others too. Thread-safe; no call blocks. `done` is called
// exactly once, on a gRPC thread, with no lock held. A `done` may make another
// call; while this is destroyed that one is cancelled at once.
//
// Errors: what the peer answered, its message unchanged; Unavailable and
// DeadlineExceeded with a readable cause (peer_failure.h), which is looked for
// first where another program may listen (PeerCheck); kDamaged for what gRPC
// cannot read.
class UnaryCaller {
 public:
  using BytesCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  UnaryCaller(PeerName peer, PeerChannel::OpenFunction open);
  // Cancels what is on its way and waits until every `done` has returned and
  // no call holds the channel any more. REQUIRES: not called from a `done`.
  ~UnaryCaller();

  UnaryCaller(const UnaryCaller&) = delete;
  UnaryCaller& operator=(const UnaryCaller&) = delete;

  // `method` is the whole path, "/muster.ParameterService/Push", and outlives
  // the call. `deadline` is of MonotonicClock.
  void Call(const char* method, grpc::ByteBuffer request, absl::Time deadline,
            BytesCallback done);

  // The same for messages without tensors, as Link::CallBytes.
  void CallBytes(const AnyMethod& method, const std::string& request,
                 absl::Time deadline, ReplyCallback<std::string> done);

 private:
  struct PendingCall;

  void Finish(const std::shared_ptr<PendingCall>& call,
              const grpc::Status& status);
  // `error`: the same, as the caller is to see it.
  absl::Status Explain(const grpc::Status& status, const absl::Status& error);

  // Constant after construction.
  const PeerName peer_;

  // Own synchronisation.
  PeerCheck check_;
  PeerChannel channel_;
  // The calls that gRPC holds something of, also after `done`.
  AliveCount alive_;

  absl::Mutex mu_;
  bool is_closing_ ABSL_GUARDED_BY(mu_) = false;
  // Shared: gRPC's completion and the destructor's cancellation race for it.
  absl::flat_hash_set<std::shared_ptr<PendingCall>> pending_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_UNARY_CALLER_H_
