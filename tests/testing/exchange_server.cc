#include "tests/testing/exchange_server.h"

#include "common/base/clock.h"
#include "proto/parameter_service.grpc.pb.h"

namespace muster {
namespace {

class StreamService : public ParameterService::WithRawCallbackMethod_Exchange<
                          ParameterService::Service> {
 public:
  explicit StreamService(ExchangeStreams* streams) : streams_(streams) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    return streams_->Open(*context);
  }

 private:
  ExchangeStreams* const streams_;
};

}  // namespace

ExchangeServer::ExchangeServer(DataLink* shard)
    : streams_(shard, SystemClock()),
      service_(std::make_unique<StreamService>(&streams_)),
      server_([this](grpc::ServerBuilder* builder) {
        builder->RegisterService(service_.get());
      }) {}

}  // namespace muster
