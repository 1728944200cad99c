#ifndef TESTS_TESTING_EXCHANGE_SERVER_H_
#define TESTS_TESTING_EXCHANGE_SERVER_H_

#include <memory>
#include <string>

#include "grpcpp/impl/codegen/service_type.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/exchange_streams.h"
#include "tests/testing/loopback_server.h"

namespace muster {

// A LoopbackServer that has Exchange streams to `shard` and nothing else, and
// takes every peer for `caller`.
class ExchangeServer {
 public:
  explicit ExchangeServer(DataLink* shard, Caller caller = {},
                          const Entrance* entrance = OpenEntrance());

  ExchangeServer(const ExchangeServer&) = delete;
  ExchangeServer& operator=(const ExchangeServer&) = delete;

  ExchangeStreams& streams() { return streams_; }
  const std::string& address() const { return server_.address(); }

  // Breaks every connection. Repeatable.
  void Stop() { server_.Stop(); }

 private:
  ExchangeStreams streams_;
  std::unique_ptr<grpc::Service> service_;
  LoopbackServer server_;
};

}  // namespace muster

#endif  // TESTS_TESTING_EXCHANGE_SERVER_H_
