#include "tests/worker/client/link/frame_server.h"

#include <utility>

#include "common/rpc/status_conversion.h"

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
    : service_(std::make_unique<Service>(std::move(handler))),
      server_([this](grpc::ServerBuilder* builder) {
        builder->RegisterCallbackGenericService(service_.get());
      }) {}

FrameServer::~FrameServer() = default;

}  // namespace muster
