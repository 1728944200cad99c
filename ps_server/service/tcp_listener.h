#ifndef PS_SERVER_SERVICE_TCP_LISTENER_H_
#define PS_SERVER_SERVICE_TCP_LISTENER_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/logging.h"
#include "common/base/reporter.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tcp/socket_loop.h"
#include "common/tensor/buffer_pool.h"
#include "common/tls/refusal_lines.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "proto/tcp_link_service.pb.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/offered_tokens.h"
#include "ps_server/service/shard_server.h"
#include "ps_server/service/tcp_connection.h"

namespace muster {

// Serves the TCP connections of workers that show the token of an offer, with
// `shard`: a few threads that share them. Thread-safe.
class TcpListener {
 public:
  // Connections that have not shown a token; with one more, the oldest ends.
  static constexpr size_t kMostGreeting = 256;
  static constexpr int kMostLoops = 8;
  // At the end, for answers to what was read.
  static constexpr absl::Duration kFarewell = absl::Seconds(1);

  struct Options {
    // Threads; 0: one a core, at most kMostLoops.
    int loops = 0;
    // Further workers are told so, and talk over gRPC.
    size_t max_connections = 64;
    // Not owned; both outlive the listener and every callback of the shard.
    ShardServer* shard = nullptr;
    const Clock* clock = nullptr;
    // Outlives the listener, too.
    const Entrance* entrance = OpenEntrance();
    // The channel over an accepted socket (TaskCredentials::accept_over).
    AcceptedGreeting::Open open;
    Reporter reporter = Reporter(&LogLine);
  };

  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Start(Options options);
  // Answers what was read, and ends every connection; what the shard answers
  // after that is lost.
  ~TcpListener();

  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  // Serves a connection whose bytes are still to be read. Does not block.
  void Accept(FileDescriptor socket);

  // A token for one connection of the caller: who shows it is taken for him.
  // Errors: OfferedTokens'.
  absl::StatusOr<TcpOffer> OfferTo(const Caller& caller);

  // Those that have shown a token.
  size_t connections() const;

 private:
  using Connections = std::list<std::shared_ptr<TcpConnection>>;

  TcpListener(Options options, std::vector<std::shared_ptr<SocketLoop>> loops);

  void Run(SocketLoop* loop);
  std::shared_ptr<SocketLoop> LeastLoaded() const;
  TcpConnection::Parts PartsOn(std::shared_ptr<SocketLoop> loop);
  // Whose a connection is, now that it has shown a token: counts it among the
  // open ones.
  absl::StatusOr<Caller> Admit(TcpConnection* connection,
                               absl::string_view token,
                               absl::string_view certificate);
  absl::StatusOr<Caller> Identify(absl::string_view token,
                                  absl::string_view certificate);
  absl::Status Open(TcpConnection* connection);
  void OnEnd(TcpConnection* connection, const absl::Status& why);
  void Report(absl::string_view what, const absl::Status& why);
  bool IsEmpty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return greeting_.empty() && open_.empty();
  }

  // Constant after construction.
  const Options options_;
  const std::vector<std::shared_ptr<SocketLoop>> loops_;
  // Shared with requests that the shard has.
  const std::shared_ptr<BufferPool> pool_;

  // Own synchronisation.
  OfferedTokens tokens_{Transport::kTcp};
  // Workers may come again at once.
  RefusalLines lines_;

  mutable absl::Mutex mu_;
  bool is_closing_ ABSL_GUARDED_BY(mu_) = false;
  // The oldest first.
  Connections greeting_ ABSL_GUARDED_BY(mu_);
  Connections open_ ABSL_GUARDED_BY(mu_);

  // Last: they use all of the above.
  std::vector<std::unique_ptr<ClockThread>> threads_;
};

// TcpLinkService over gRPC: tells who asks how to connect, by `offer`.
// Thread-safe. The clock and the entrance outlive the service.
std::unique_ptr<grpc::Service> MakeTcpLinkService(
    std::function<absl::StatusOr<TcpOffer>(const Caller&)> offer,
    const Clock* clock, const Entrance* entrance = OpenEntrance());

}  // namespace muster

#endif  // PS_SERVER_SERVICE_TCP_LISTENER_H_
