#ifndef PS_SERVER_SERVICE_TCP_CONNECTION_H_
#define PS_SERVER_SERVICE_TCP_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tcp/frame_receiver.h"
#include "common/rpc/tcp/frame_sender.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tcp/socket_loop.h"
#include "common/tensor/buffer_pool.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/entrance.h"

namespace muster {

// The ps's end of one TCP connection for tensors: lets in who shows the token
// of an offer, and makes its requests calls of the shard. Values take the place
// of the gradient that came with the request, if both take as many bytes.
//
// A peer that sends without reading costs kMaxUnanswered requests and no more.
// The connection ends when the peer has gone, with its certificate, after bytes
// that are no request, and on Close; but for the first, when what was read
// before is answered.
//
// Shared by its loop and by the shard's callbacks, which may come after both
// the peer and the loop's thread are gone.
class TcpConnection : public SocketHandler,
                      public std::enable_shared_from_this<TcpConnection> {
 public:
  // A push and a pull of one worker, four parts each. A request counts until
  // its answer is sent.
  static constexpr int kMaxUnanswered = 8;
  // Then the loop's other connections have their turn.
  static constexpr int kMaxPerTurn = 4;
  static constexpr absl::Duration kGreetingPatience = absl::Seconds(10);
  // For a peer to close its end, too.
  static constexpr absl::Duration kFarewell = absl::Seconds(1);

  struct Parts {
    // Not owned; these, and the entrance, outlive every callback of the shard.
    DataLink* shard = nullptr;
    const Clock* clock = nullptr;
    const Entrance* entrance = OpenEntrance();
    // The memory of requests and answers.
    std::shared_ptr<BufferPool> pool;
    std::shared_ptr<SocketLoop> loop;
    // The channel over the socket.
    AcceptedGreeting::Open open;
    // The next two are called on the loop's thread. Whose connection it is that
    // shows the token; an error refuses it.
    std::function<absl::StatusOr<Caller>(TcpConnection* connection,
                                         absl::string_view token,
                                         absl::string_view certificate)>
        admit;
    // Once, at the end.
    std::function<void(TcpConnection* connection, const absl::Status& why)>
        on_end;
  };

  TcpConnection(Parts parts, FileDescriptor socket);

  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  int fd() const override { return greeting_.fd(); }
  Interest Proceed() override;

  // Reads no more, and ends when what was read is answered. `why`: for on_end.
  // Thread-safe.
  void Close(const absl::Status& why);

 private:
  class Call;
  enum class Stage {
    kGreeting,
    kOpen,
    // Everything was sent; the peer is to close its end, too.
    kLeaving,
    kEnded,
  };

  void Greet();
  // Returns whether more may be there.
  bool Serve();
  void Send();
  bool ReadRequests();
  bool MayRead();
  // Passes a request to the shard.
  void Handle(ReceivedFrame request);
  void BeginLeaving();
  void AwaitClose();
  void StopReading(const absl::Status& why);
  void End(const absl::Status& why);
  Interest InterestNow(bool again);

  // On any thread.
  void AnswerError(uint64_t call, const absl::Status& status);
  void Answer(uint64_t call, absl::string_view fields, absl::Cord data);
  void Add(FrameHeader header, absl::string_view fields, absl::Cord data);
  // Requests whose answers are not sent.
  int Unanswered();
  absl::Status why() const;

  // Constant after construction.
  const Parts parts_;

  // Own synchronisation.
  FrameSender sender_;
  // Nothing more is read.
  std::atomic<bool> is_closing_ = false;
  // The loop's thread, since its first turn.
  std::atomic<std::thread::id> thread_;

  // Used by the loop's thread. A turn may begin within another one, while that
  // waits for the shard.
  Stage stage_ = Stage::kGreeting;
  AcceptedGreeting greeting_;
  std::unique_ptr<ByteChannel> channel_;
  FrameReceiver receiver_;
  Caller caller_;
  // The end of its patience, while it greets or leaves.
  absl::Time give_up_;
  // The socket took no more.
  bool is_full_ = false;
  // The loop looks for more to read.
  bool reads_ = false;

  mutable absl::Mutex mu_;
  // Requests that the shard has.
  int in_service_ ABSL_GUARDED_BY(mu_) = 0;
  // The calls of answers that may not be sent yet, in the sender's order.
  std::deque<uint64_t> unsent_ ABSL_GUARDED_BY(mu_);
  absl::Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_TCP_CONNECTION_H_
