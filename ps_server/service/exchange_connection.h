#ifndef PS_SERVER_SERVICE_EXCHANGE_CONNECTION_H_
#define PS_SERVER_SERVICE_EXCHANGE_CONNECTION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/frame/exchange_codec.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/entrance.h"

namespace muster {

// The server's end of one Exchange stream: each request becomes a call of the
// shard, answers are written as they come. Beyond
// kMaxUnanswered requests whose answers have not left, nothing is read, and
// gRPC's flow control lets the sender wait: what a peer sends without reading
// takes so much memory and no more.
//
// Ends when the peer has ended its half and has every answer; with
// InvalidArgument on a message that is none; with Unavailable on the first one
// after the end of the peer's certificate; or on End. Thread-safe. Shared by
// its owner, which keeps it until `done`, and the shard's callbacks.
class ExchangeConnection
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public std::enable_shared_from_this<ExchangeConnection> {
 public:
  // A push and a pull of one worker, four parts each.
  static constexpr int kMaxUnanswered = 8;

  struct Parts {
    // It, the entrance and the clock outlive every callback of the shard.
    DataCallTarget target;
    // Each of its requests is checked.
    Caller caller;
    const Entrance* entrance = OpenEntrance();
    const Clock* clock = nullptr;
    // Called at the end, when gRPC uses it no more.
    std::function<void(ExchangeConnection*)> done;
  };

  explicit ExchangeConnection(Parts parts);

  ExchangeConnection(const ExchangeConnection&) = delete;
  ExchangeConnection& operator=(const ExchangeConnection&) = delete;

  // Begins to read. Once.
  void Start();

  // Reads no more, answers what was read, and ends with `why`.
  void End(const absl::Status& why);

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Whether the caller may make a call now. A stream whose certificate has
  // ended ends.
  absl::Status Check(const AnyMethod* row);
  // Passes a request to the shard.
  void Handle(const grpc::ByteBuffer& bytes);
  // The shard's answer to a request.
  void Answer(uint64_t call, DataMethod method,
              const absl::StatusOr<grpc::ByteBuffer>& reply);
  void WriteOrQueue(grpc::ByteBuffer bytes);
  // Reads on, if it stood still and may.
  void ReadOn();
  // No answer can reach the peer any more.
  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the stream if nothing is left to do.
  void FinishIfIdle() ABSL_LOCKS_EXCLUDED(mu_);

  // Constant after construction.
  const Parts parts_;

  // Used by the one that writes, in turn.
  grpc::ByteBuffer outgoing_;

  absl::Mutex mu_;
  // gRPC writes here while reading_.
  grpc::ByteBuffer incoming_ ABSL_GUARDED_BY(mu_);
  // Requests that were read and whose answers have not left.
  int unanswered_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<grpc::ByteBuffer> answers_ ABSL_GUARDED_BY(mu_);
  // gRPC reads, or a thread is about to make it.
  bool reading_ ABSL_GUARDED_BY(mu_) = true;
  // Threads that start a read: while one returns, the next may begin.
  int starting_reads_ ABSL_GUARDED_BY(mu_) = 0;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // Nothing more is read.
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_EXCHANGE_CONNECTION_H_
