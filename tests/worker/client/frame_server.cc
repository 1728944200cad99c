#include "tests/worker/client/frame_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/server_settings.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace muster {
namespace {

// One call; deletes itself when gRPC is done with it.
class Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(const FrameServer::Handler& handler, std::string method)
      : handler_(handler), method_(std::move(method)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no request"));
      return;
    }
    absl::StatusOr<grpc::ByteBuffer> reply = handler_(method_, request_);
    if (!reply.ok()) {
      Finish(ToGrpcStatus(reply.status()));
      return;
    }
    reply_ = *std::move(reply);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  const FrameServer::Handler& handler_;
  const std::string method_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer reply_;
};

}  // namespace

class FrameServer::Service : public grpc::CallbackGenericService {
 public:
  explicit Service(FrameServer::Handler handler)
      : handler_(std::move(handler)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(handler_, context->method());
  }

 private:
  const FrameServer::Handler handler_;
};

FrameServer::FrameServer(Handler handler)
    : service_(std::make_unique<Service>(std::move(handler))) {
  grpc::ServerBuilder builder;
  ApplyServerSettings({}, &builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FrameServer::~FrameServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

}  // namespace muster
