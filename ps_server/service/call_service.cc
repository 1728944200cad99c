#include "ps_server/service/call_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/frame/byte_buffer.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/impl/codegen/rpc_method.h"
#include "grpcpp/impl/codegen/rpc_service_method.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "ps_server/service/serve_call.h"

namespace muster {

using grpc::internal::CallbackBidiHandler;
using grpc::internal::CallbackUnaryHandler;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

Caller UnprovenPeer(const grpc::CallbackServerContext& /*context*/) {
  return {Role::kUnproven, std::nullopt, Transport::kGrpc};
}

CallService::CallService(ServedCalls* calls, const Clock* clock,
                         IdentifyCaller identify)
    : clock_(clock), identify_(std::move(identify)) {
  for (const AnyMethod& method : calls->methods()) {
    AddCall(method, [calls, method](const grpc::ByteBuffer& request,
                                    absl::Time deadline,
                                    ReplyCallback<grpc::ByteBuffer> done) {
      absl::StatusOr<std::string> bytes = BytesOf(request);
      if (!bytes.ok()) return done(bytes.status());
      calls->CallBytes(
          method, *std::move(bytes), deadline,
          [done = std::move(done)](const absl::StatusOr<std::string>& reply) {
            if (!reply.ok()) return done(reply.status());
            done(ToByteBuffer(*reply));
          });
    });
  }
}

// As generated services do: gRPC owns the method and its handler.
void CallService::AddCall(const AnyMethod& method, Handler handler) {
  AddMethod(new RpcServiceMethod(method.path, RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodRawCallback(
      methods_++,
      new CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
          [this, method, handler = std::move(handler)](
              grpc::CallbackServerContext* context,
              const grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
            grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
            const absl::Status may = CheckMayCall(method, identify_(*context));
            if (!may.ok()) {
              reactor->Finish(ToGrpcStatus(may));
              return reactor;
            }
            handler(*request, DeadlineOf(*context, *clock_),
                    [reactor, reply](absl::StatusOr<grpc::ByteBuffer> bytes) {
                      if (bytes.ok()) reply->Swap(&*bytes);
                      reactor->Finish(ToGrpcStatus(bytes.status()));
                    });
            return reactor;
          }));
}

void CallService::AddStream(
    const AnyMethod& method,
    std::function<Stream*(const grpc::CallbackServerContext&, const Caller&)>
        open) {
  AddMethod(
      new RpcServiceMethod(method.path, RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodRawCallback(
      methods_++,
      new CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
          [this, open = std::move(open)](grpc::CallbackServerContext* context) {
            return open(*context, identify_(*context));
          }));
}

}  // namespace muster
