#include "tests/testing/exchange_server.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/server_settings.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
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
      service_(std::make_unique<StreamService>(&streams_)) {
  grpc::ServerBuilder builder;
  ApplyServerSettings({}, &builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

void ExchangeServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace muster
