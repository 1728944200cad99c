#ifndef PS_SERVER_SERVICE_EXCHANGE_STREAMS_H_
#define PS_SERVER_SERVICE_EXCHANGE_STREAMS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "grpcpp/server_context.h"
#include "common/tensor/buffer_pool.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/exchange_connection.h"

namespace muster {

// Every Exchange stream of a ps. Thread-safe. Outlives the gRPC server.
class ExchangeStreams {
 public:
  // An honest worker has one, and another one for a moment after it broke.
  // Together they may have fewer calls on their way than gRPC allows unary
  // ones (GRPC_ARG_MAX_CONCURRENT_STREAMS).
  static constexpr int kMaxOfConnection = 4;

  // All, and this, outlive every callback of the shard.
  ExchangeStreams(DataLink* shard, const Clock* clock,
                  const Entrance* entrance = OpenEntrance())
      : shard_(shard), clock_(clock), entrance_(entrance) {}

  ExchangeStreams(const ExchangeStreams&) = delete;
  ExchangeStreams& operator=(const ExchangeStreams&) = delete;

  // A stream that `caller` has opened. One too many ends with
  // ResourceExhausted, one of who may have none with the error of the entrance.
  ExchangeConnection* Open(const grpc::CallbackServerContext& context,
                           const Caller& caller);

  // Ends every stream, those that come later at once, when what was read is
  // answered; without that a server waits for them when it shuts down.
  void Close();

 private:
  void OnDone(const std::string& peer, ExchangeConnection* connection);

  DataLink* const shard_;
  const Clock* const clock_;
  const Entrance* const entrance_;
  // The memory of answers on their way.
  BufferPool values_;

  absl::Mutex mu_;
  absl::flat_hash_map<ExchangeConnection*, std::shared_ptr<ExchangeConnection>>
      open_ ABSL_GUARDED_BY(mu_);
  // The streams of each connection, by gRPC's name of the peer
  // ("ipv4:10.0.0.1:4321").
  absl::flat_hash_map<std::string, int> of_peer_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_EXCHANGE_STREAMS_H_
