#include "ps_server/parameter_service.h"

#include <utility>

#include "grpcpp/support/server_callback.h"
#include "proto/parameter_service.grpc.pb.h"
#include "ps_server/buffer_pool.h"
#include "ps_server/serve_call.h"

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
        ParameterService::Service>>>>>>>>>>;
// clang-format on

class ParameterServiceShell : public ParameterServiceBase {
 public:
  ParameterServiceShell(ShardServer* server, const Clock* clock)
      : server_(server), clock_(clock) {}

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

 private:
  ShardServer* const server_;
  const Clock* const clock_;
  // Of answers on their way.
  BufferPool values_;
};

// Ends a call whose request could not be read.
grpc::ServerUnaryReactor* Refuse(grpc::ServerUnaryReactor* reactor,
                                 const absl::Status& status) {
  reactor->Finish(ToGrpcStatus(status));
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
  Reactor* const reactor = context->DefaultReactor();
  absl::StatusOr<Frame<LoadPart>> frame = DecodeFrame<LoadPart>(*request);
  if (!frame.ok()) return Refuse(reactor, frame.status());
  server_->Load(*std::move(frame), DeadlineOf(*context, *clock_),
                AnswerRaw<LoadReply>(reactor, reply));
  return reactor;
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
  Reactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<PullRequest> parsed = ParseRaw<PullRequest>(*request);
  if (!parsed.ok()) return Refuse(reactor, parsed.status());
  server_->Pull(*parsed, DeadlineOf(*context, *clock_),
                AnswerValues<PullReply>(reactor, reply, &values_));
  return reactor;
}

grpc::ServerUnaryReactor* ParameterServiceShell::Push(
    Context* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* reply) {
  Reactor* const reactor = context->DefaultReactor();
  absl::StatusOr<Frame<PushPart>> frame = DecodeFrame<PushPart>(*request);
  if (!frame.ok()) return Refuse(reactor, frame.status());
  server_->Push(*std::move(frame), DeadlineOf(*context, *clock_),
                AnswerValues<PushReply>(reactor, reply, &values_));
  return reactor;
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
  Reactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<ReadSnapshotRequest> parsed =
      ParseRaw<ReadSnapshotRequest>(*request);
  if (!parsed.ok()) return Refuse(reactor, parsed.status());
  server_->ReadSnapshot(*parsed, DeadlineOf(*context, *clock_),
                        AnswerFrame<SnapshotPart>(reactor, reply));
  return reactor;
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
    Context* context, const StateRequest* /*request*/, ShardState* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->State(DeadlineOf(*context, *clock_), Answer(reactor, reply));
  return reactor;
}

}  // namespace

std::unique_ptr<grpc::Service> MakeParameterService(ShardServer* server,
                                                    const Clock* clock) {
  return std::make_unique<ParameterServiceShell>(server, clock);
}

}  // namespace muster
