#include "ps_server/service/parameter_service.h"

#include <utility>

#include "grpcpp/support/server_callback.h"
#include "proto/parameter_service.grpc.pb.h"
#include "ps_server/block/buffer_pool.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/serve_call.h"

namespace muster {
namespace {

// The generated service with every method as a callback, frames as raw bytes.
// clang-format off
using ParameterServiceBase =
    ParameterService::WithCallbackMethod_Hello<
    ParameterService::WithCallbackMethod_Define<
    ParameterService::WithRawCallbackMethod_Load<
    ParameterService::WithCallbackMethod_Seal<
    ParameterService::WithRawCallbackMethod_Pull<
    ParameterService::WithRawCallbackMethod_Push<
    ParameterService::WithCallbackMethod_BeginSnapshot<
    ParameterService::WithRawCallbackMethod_ReadSnapshot<
    ParameterService::WithCallbackMethod_EndSnapshot<
    ParameterService::WithCallbackMethod_State<
    ParameterService::WithRawCallbackMethod_Exchange<
        ParameterService::Service>>>>>>>>>>>;
// clang-format on

class ParameterServiceShell : public ParameterServiceBase {
 public:
  ParameterServiceShell(ShardServer* server, ExchangeStreams* streams,
                        const Clock* clock)
      : server_(server), streams_(streams), clock_(clock) {}

  using Reactor = grpc::ServerUnaryReactor;
  using Context = grpc::CallbackServerContext;

  Reactor* Hello(Context* context, const HelloRequest* request,
                 HelloReply* reply) override;
  Reactor* Define(Context* context, const DefineRequest* request,
                  DefineReply* reply) override;
  Reactor* Load(Context* context, const grpc::ByteBuffer* request,
                grpc::ByteBuffer* reply) override;
  Reactor* Seal(Context* context, const SealRequest* request,
                SealReply* reply) override;
  Reactor* Pull(Context* context, const grpc::ByteBuffer* request,
                grpc::ByteBuffer* reply) override;
  Reactor* Push(Context* context, const grpc::ByteBuffer* request,
                grpc::ByteBuffer* reply) override;
  Reactor* BeginSnapshot(Context* context, const BeginSnapshotRequest* request,
                         BeginSnapshotReply* reply) override;
  Reactor* ReadSnapshot(Context* context, const grpc::ByteBuffer* request,
                        grpc::ByteBuffer* reply) override;
  Reactor* EndSnapshot(Context* context, const EndSnapshotRequest* request,
                       EndSnapshotReply* reply) override;
  Reactor* State(Context* context, const StateRequest* request,
                 ShardState* reply) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      Context* context) override;

 private:
  // A call with tensors.
  Reactor* PassData(DataMethod method, Context* context,
                    const grpc::ByteBuffer& request, grpc::ByteBuffer* reply);

  ShardServer* const server_;
  ExchangeStreams* const streams_;
  const Clock* const clock_;
  // The memory of answers on their way.
  BufferPool values_;
};

grpc::ServerUnaryReactor* ParameterServiceShell::PassData(
    DataMethod method, Context* context, const grpc::ByteBuffer& request,
    grpc::ByteBuffer* reply) {
  Reactor* const reactor = context->DefaultReactor();
  PassDataCall({server_, &values_}, {method, request},
               DeadlineOf(*context, *clock_),
               [reactor, reply](absl::StatusOr<grpc::ByteBuffer> bytes) {
                 if (bytes.ok()) reply->Swap(&*bytes);
                 reactor->Finish(ToGrpcStatus(bytes.status()));
               });
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::Hello(
    Context* context, const HelloRequest* request, HelloReply* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->Hello(*request, DeadlineOf(*context, *clock_),
                 Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::Define(
    Context* context, const DefineRequest* request, DefineReply* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->Define(*request, DeadlineOf(*context, *clock_),
                  Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::Load(
    Context* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return PassData(DataMethod::kLoad, context, *request, reply);
}

grpc::ServerUnaryReactor* ParameterServiceShell::Seal(
    Context* context, const SealRequest* request, SealReply* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->Seal(*request, DeadlineOf(*context, *clock_),
                Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::Pull(
    Context* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return PassData(DataMethod::kPull, context, *request, reply);
}

grpc::ServerUnaryReactor* ParameterServiceShell::Push(
    Context* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return PassData(DataMethod::kPush, context, *request, reply);
}

grpc::ServerUnaryReactor* ParameterServiceShell::BeginSnapshot(
    Context* context, const BeginSnapshotRequest* request,
    BeginSnapshotReply* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->BeginSnapshot(*request, DeadlineOf(*context, *clock_),
                         Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::ReadSnapshot(
    Context* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  return PassData(DataMethod::kReadSnapshot, context, *request, reply);
}

grpc::ServerUnaryReactor* ParameterServiceShell::EndSnapshot(
    Context* context, const EndSnapshotRequest* request,
    EndSnapshotReply* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->EndSnapshot(*request, DeadlineOf(*context, *clock_),
                       Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::State(
    Context* context, const StateRequest* request, ShardState* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->State(*request, DeadlineOf(*context, *clock_),
                 Answer(reactor, reply));
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
ParameterServiceShell::Exchange(Context* context) {
  return streams_->Open(*context);
}

}  // namespace

std::unique_ptr<grpc::Service> MakeParameterService(ShardServer* server,
                                                    ExchangeStreams* streams,
                                                    const Clock* clock) {
  return std::make_unique<ParameterServiceShell>(server, streams, clock);
}

}  // namespace muster
