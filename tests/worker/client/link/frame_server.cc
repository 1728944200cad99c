#include "tests/worker/client/link/frame_server.h"

#include <utility>

#include "common/rpc/frame/exchange_codec.h"
#include "common/rpc/status_conversion.h"
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
    *header.mutable_error() = StatusToDetails(reply.status());
    const grpc::Slice slice(header.SerializeAsString());
    return grpc::ByteBuffer(&slice, 1);
  }

  // The path of the unary method.
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
    : service_(std::make_unique<Service>(std::move(handler))),
      server_([this](grpc::ServerBuilder* builder) {
        builder->RegisterCallbackGenericService(service_.get());
      }) {}

FrameServer::~FrameServer() = default;

}  // namespace muster
