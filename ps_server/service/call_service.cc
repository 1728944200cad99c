#include "ps_server/service/call_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/call_table.h"
#include "common/rpc/frame/byte_buffer.h"
#include "common/rpc/server/peer_machine.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/impl/codegen/rpc_method.h"
#include "grpcpp/impl/codegen/rpc_service_method.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/support/server_callback.h"
#include "ps_server/service/serve_call.h"

namespace muster {

using grpc::internal::CallbackUnaryHandler;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

CallService::CallService(ServedCalls* calls, const Clock* clock,
                         const Entrance* entrance)
    : clock_(clock), entrance_(entrance) {
  if (calls == nullptr) return;
  for (const AnyMethod& method : calls->methods()) {
    AddCall(method, [this, calls, method](
                        const grpc::ByteBuffer& request, const Caller& caller,
                        absl::Time deadline,
                        ReplyCallback<grpc::ByteBuffer> done) {
      absl::StatusOr<std::string> bytes = BytesOf(request);
      if (!bytes.ok()) return done(bytes.status());
      Pass(calls, method, *std::move(bytes), caller, deadline, std::move(done));
    });
  }
}

void CallService::Pass(ServedCalls* calls, const AnyMethod& method,
                       std::string request, const Caller& caller,
                       absl::Time deadline,
                       ReplyCallback<grpc::ByteBuffer> done) {
  // Its certificate names its task: it need not ask.
  if (method == kAssignTaskCall && caller.task.has_value()) {
    AssignTaskReply reply;
    reply.set_index(caller.task->second);
    return done(ToByteBuffer(reply.SerializeAsString()));
  }
  if (method == kProfileCall) {
    ProfileRequest profile;
    // One that is none is refused below.
    profile.ParseFromString(request);
    const absl::Status may = entrance_->CheckProfile(profile, caller);
    if (!may.ok()) return done(may);
  }
  if (caller.role != Role::kUnproven) {
    const std::optional<Sender> sender = calls->SenderOf(method, request);
    if (sender.has_value()) {
      const absl::Status own =
          entrance_->CheckSenderIs(method, *sender, caller);
      if (!own.ok()) return done(own);
    }
  }
  calls->CallBytes(
      method, std::move(request), deadline,
      [done = std::move(done)](const absl::StatusOr<std::string>& reply) {
        if (!reply.ok()) return done(reply.status());
        done(ToByteBuffer(*reply));
      });
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
            Caller caller = entrance_->Identify(*context);
            if (IsSteering(method) || method == kProfileCall) {
              caller.is_local = IsPeerOfThisMachine(context->peer());
            }
            const absl::Status may = entrance_->Check(method, caller);
            if (!may.ok()) {
              reactor->Finish(ToGrpcStatus(may));
              return reactor;
            }
            handler(*request, caller, DeadlineOf(*context, *clock_),
                    [reactor, reply](absl::StatusOr<grpc::ByteBuffer> bytes) {
                      if (bytes.ok()) reply->Swap(&*bytes);
                      reactor->Finish(ToGrpcStatus(bytes.status()));
                    });
            return reactor;
          }));
}

}  // namespace muster
