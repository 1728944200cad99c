#ifndef TESTS_TESTING_EXCHANGE_SERVER_H_
#define TESTS_TESTING_EXCHANGE_SERVER_H_

#include <memory>
#include <string>

#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server.h"
#include "ps_server/data_link.h"
#include "ps_server/exchange_streams.h"

namespace muster {

// A gRPC server on a free loopback port, with the production settings, that
// has Exchange streams to `shard` and nothing else.
class ExchangeServer {
 public:
  explicit ExchangeServer(DataLink* shard);
  ~ExchangeServer() { Stop(); }

  ExchangeServer(const ExchangeServer&) = delete;
  ExchangeServer& operator=(const ExchangeServer&) = delete;

  ExchangeStreams& streams() { return streams_; }
  const std::string& address() const { return address_; }

  // Breaks every connection. Repeatable.
  void Stop();

 private:
  ExchangeStreams streams_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace muster

#endif  // TESTS_TESTING_EXCHANGE_SERVER_H_
