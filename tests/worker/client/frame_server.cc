#include "tests/worker/client/frame_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/exchange_codec.h"
#include "common/rpc/server_settings.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "proto/parameter_service.pb.h"

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

// One Exchange stream; a request is read when the one before was answered.
class Stream : public grpc::ServerGenericBidiReactor {
 public:
  explicit Stream(const FrameServer::Handler& handler) : handler_(handler) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    ExchangeRequest header;
    ExchangeBody body;
    const absl::Status status = DecodeExchange(request_, &header, &body);
    if (!status.ok()) return Finish(ToGrpcStatus(status));
    reply_ = Answer(header.call(), body);
    StartWrite(&reply_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer Answer(uint64_t call, const ExchangeBody& request) {
    ExchangeReply header;
    header.set_call(call);
    const absl::StatusOr<grpc::ByteBuffer> reply =
        handler_(PathOf(request.method), request.message);
    if (reply.ok()) return EncodeExchange(header, {request.method, *reply});
    header.mutable_error()->ParseFromString(StatusToBytes(reply.status()));
    const grpc::Slice slice(header.SerializeAsString());
    return grpc::ByteBuffer(&slice, 1);
  }

  // Of the unary method.
  static std::string PathOf(DataMethod method) {
    const std::string prefix = "/muster.ParameterService/";
    switch (method) {
      case DataMethod::kLoad:
        return prefix + "Load";
      case DataMethod::kPull:
        return prefix + "Pull";
      case DataMethod::kPush:
        return prefix + "Push";
      case DataMethod::kReadSnapshot:
        return prefix + "ReadSnapshot";
    }
    return prefix;
  }

  const FrameServer::Handler& handler_;
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
    if (context->method() == kExchangeMethod) return new Stream(handler_);
    return new Call(handler_, context->method());
  }

 private:
  const FrameServer::Handler handler_;
};

FrameServer::FrameServer(Handler handler)
    : service_(std::make_unique<Service>(std::move(handler))) {
  grpc::ServerBuilder builder;
  const auto buffers = ApplyServerSettings({}, &builder);
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
