#ifndef WORKER_CLIENT_LINK_TCP_CALLER_H_
#define WORKER_CLIENT_LINK_TCP_CALLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/tcp/frame_receiver.h"
#include "common/rpc/tcp/frame_sender.h"
#include "common/rpc/tcp/socket_loop.h"
#include "common/tensor/buffer_pool.h"
#include "worker/client/link/peer_failure.h"

namespace muster {

// Unary calls to one ps over one open connection (common/rpc/tcp), which ends
// with either process. A request's data are sent from where they lie: by the
// calling thread as far as the socket takes them, the rest, and under TLS
// everything, by the thread of Run.
//
// Thread-safe; no call blocks. `done` is called exactly once, with no lock
// held: on the thread of Run and Fail, or on the caller's if the call fails at
// once. After it nothing is written to the call's place.
//
// Errors: what the peer answered, its message unchanged; Unavailable when the
// connection is lost; DeadlineExceeded, up to kTick late; Cancelled if the
// place did not want the answer any more; InvalidArgument for a request that
// no frame holds.
class TcpCaller : private SocketHandler {
 public:
  struct Request {
    DataMethod method;
    // The protobuf message without its data.
    std::string fields;
    absl::Cord data;
    // For the answer's data; null for none.
    std::shared_ptr<ValuePlace> place;
  };
  struct Answer {
    std::string fields;
    // Empty if the data were placed.
    absl::Cord data;
    bool is_placed = false;
  };
  using DoneCallback = std::function<void(absl::StatusOr<Answer>)>;
  static constexpr absl::Duration kTick = absl::Milliseconds(250);
  // A connection that takes no byte of a request for so long, past the
  // request's deadline, is lost: its data are the caller's memory.
  static constexpr absl::Duration kStuck = absl::Seconds(5);

  // `channel` is past its greeting. `pool` and `clock` (monotonic) outlive
  // this.
  TcpCaller(PeerName peer, std::unique_ptr<ByteChannel> channel,
            std::unique_ptr<SocketLoop> loop, BufferPool* pool,
            const Clock* clock);

  TcpCaller(const TcpCaller&) = delete;
  TcpCaller& operator=(const TcpCaller&) = delete;

  void Call(Request request, absl::Time deadline, DoneCallback done);

  // The end of a connection's time: after `at` no more calls come, which
  // `on_retire` sees to, on the thread of Run, and those under way are waited
  // for.
  struct Retirement {
    absl::Time at = absl::InfiniteFuture();
    std::function<void()> on_retire;
  };

  // Delivers answers until the connection is lost, and says why it was lost;
  // until it has retired: OK. Calls wait on: Fail comes next. Once, on a thread
  // of the owner's.
  absl::Status Run(const Retirement& retirement);

  // Fails every call, those to come too, because of what Run said. On the
  // thread of Run.
  void Fail(const absl::Status& lost);

  // Ends Run.
  void Shutdown();

 private:
  struct PendingCall {
    absl::Time deadline;
    std::shared_ptr<ValuePlace> place;
    DoneCallback done;
  };

  int fd() const override { return channel_->fd(); }
  Interest Proceed() override;

  // Sends what this thread may.
  void SendSome();
  // Receives and sends what can be done without waiting.
  absl::StatusOr<Interest> Exchange();
  // Errors: InvalidArgument for an answer that makes no sense.
  absl::Status OnAnswer(ReceivedFrame frame);
  std::shared_ptr<ValuePlace> PlaceOf(const FrameHeader& header);
  // Fails the calls whose deadline has passed. Errors: Unavailable if one of
  // them cannot be sent.
  absl::Status Expire(absl::Time now);
  bool IsStuck(absl::Time now);
  bool IsIdle();
  absl::Status Named(absl::StatusCode code, absl::string_view words) const;

  // Constant after construction.
  const PeerName peer_;
  const Clock* const clock_;

  // Own synchronisation: one thread receives, one at a time sends.
  const std::unique_ptr<ByteChannel> channel_;
  FrameSender sender_;
  const std::unique_ptr<SocketLoop> loop_;

  // Used by the thread of Run.
  FrameReceiver receiver_;
  absl::Status end_;
  // Calls that have failed while they were being sent.
  std::vector<uint64_t> unsent_;
  // The newest bytes that the socket took.
  uint64_t sent_bytes_ = 0;
  absl::Time sent_at_;

  absl::Mutex mu_;
  uint64_t last_call_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<uint64_t, PendingCall> calls_ ABSL_GUARDED_BY(mu_);
  // Why the connection is lost; OK while it is not.
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_TCP_CALLER_H_
