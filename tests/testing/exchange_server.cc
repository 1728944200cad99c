#include "tests/testing/exchange_server.h"

#include <utility>

#include "common/base/clock.h"
#include "proto/parameter_service.grpc.pb.h"

namespace muster {
namespace {

class StreamService : public ParameterService::WithRawCallbackMethod_Exchange<
                          ParameterService::Service> {
 public:
  StreamService(ExchangeStreams* streams, Caller caller)
      : streams_(streams), caller_(std::move(caller)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    return streams_->Open(*context, caller_);
  }

 private:
  ExchangeStreams* const streams_;
  const Caller caller_;
};

}  // namespace

ExchangeServer::ExchangeServer(DataLink* shard, Caller caller,
                               const Entrance* entrance)
    : streams_(shard, SystemClock(), entrance),
      service_(std::make_unique<StreamService>(&streams_, std::move(caller))),
      server_([this](grpc::ServerBuilder* builder) {
        builder->RegisterService(service_.get());
      }) {}

}  // namespace muster
