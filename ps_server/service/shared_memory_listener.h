#ifndef PS_SERVER_SERVICE_SHARED_MEMORY_LISTENER_H_
#define PS_SERVER_SERVICE_SHARED_MEMORY_LISTENER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/shared_memory/handshake.h"
#include "common/shared_memory/memory_segment.h"
#include "common/tls/refusal_lines.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "proto/shared_memory_service.pb.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/offered_tokens.h"
#include "ps_server/service/shard_server.h"
#include "ps_server/service/shared_memory_connection.h"

namespace muster {

// Gives memory to workers of the same machine and user that show the token,
// and serves their requests with `shard`: one thread that listens and one for
// each worker. A worker that dies takes its thread and its memory with it. Also
// gives them the shard's parameters to read where those are pulled in place.
//
// Thread-safe.
class SharedMemoryListener {
 public:
  struct Options {
    // Further workers are told so, and talk over gRPC.
    int max_connections = 16;
    // Not owned; both outlive the listener and every callback of the shard.
    ShardServer* shard = nullptr;
    const Clock* clock = nullptr;
    // Outlives the listener, too.
    const Entrance* entrance = OpenEntrance();
  };

  // Errors: Unavailable, ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<SharedMemoryListener>> Start(
      Options options);
  // Closes every connection; what the shard answers after that is lost.
  ~SharedMemoryListener();

  SharedMemoryListener(const SharedMemoryListener&) = delete;
  SharedMemoryListener& operator=(const SharedMemoryListener&) = delete;

  // The name and a token of his own that a caller connects with: who shows it
  // is taken for him. Errors: OfferedTokens'.
  absl::StatusOr<SharedMemoryOffer> OfferTo(const Caller& caller);

  // Workers that are being served, or greeted.
  int connections() const { return connections_; }

 private:
  // A thread that serves one worker.
  struct Server {
    std::shared_ptr<std::atomic<bool>> ended;
    std::unique_ptr<ClockThread> thread;
  };

  SharedMemoryListener(Options options, FileDescriptor socket,
                       FileDescriptor stop, std::string socket_name);

  void Listen();
  // Waits for a worker, or for a while if none can be accepted. False at the
  // end.
  bool AwaitWorker(bool may_accept) const;
  // False if none can be accepted for a while.
  bool AcceptOne();
  // Has `serve` do with one worker what it does, on a thread of its own, and
  // counts it in `count` meanwhile.
  void StartServing(FileDescriptor socket, std::atomic<int>* count,
                    void (SharedMemoryListener::*serve)(FileDescriptor));
  // Greets and serves one worker.
  void ServeOne(FileDescriptor socket);
  // Greets one worker and tells it that there are too many.
  void RefuseOne(FileDescriptor socket);
  // The wish of a worker that shows a token, and whose token it is.
  struct Claim {
    SegmentClaim wanted;
    Caller caller;
    // To be closed with the socket.
    std::string token;
  };
  // Tells a worker whose token is not known.
  absl::StatusOr<Claim> AwaitOne(const FileDescriptor& socket);
  void ServeClaim(FileDescriptor socket, const Claim& claim);
  void SayTurnedAway(const absl::Status& why);
  // Tells a worker that has shown its token why it gets nothing.
  void Refuse(const FileDescriptor& socket, const absl::Status& why);
  void Serve(FileDescriptor socket, MemorySegment segment,
             const Caller& caller);
  absl::Status GiveParameters(const FileDescriptor& socket, int64_t model_epoch,
                              const Caller& caller);
  // False if the listener stops.
  bool Register(const std::shared_ptr<SharedMemoryConnection>& connection);
  // Joins threads that have ended.
  void Reap();

  // Constant after construction.
  const Options options_;
  const FileDescriptor socket_;
  // An eventfd, readable when the listener stops.
  const FileDescriptor stop_;
  const std::string socket_name_;

  // Own synchronisation.
  OfferedTokens tokens_{Transport::kSharedMemory};
  // Workers may come again at once.
  RefusalLines lines_;
  std::atomic<int> connections_ = 0;
  // Workers that are being told that there are too many.
  std::atomic<int> refusals_ = 0;

  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<SharedMemoryConnection>> open_ ABSL_GUARDED_BY(mu_);

  // Used by the thread below, and by the destructor after it.
  std::vector<Server> servers_;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

// SharedMemoryService over gRPC: tells who asks where this ps offers memory, by
// `offer`. Thread-safe. The clock and the entrance outlive the service.
std::unique_ptr<grpc::Service> MakeSharedMemoryService(
    std::function<absl::StatusOr<SharedMemoryOffer>(const Caller&)> offer,
    const Clock* clock, const Entrance* entrance = OpenEntrance());

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SHARED_MEMORY_LISTENER_H_
