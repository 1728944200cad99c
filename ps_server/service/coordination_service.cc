#include "ps_server/service/coordination_service.h"

#include "grpcpp/support/server_callback.h"
#include "proto/coordination_service.grpc.pb.h"
#include "ps_server/service/serve_call.h"

namespace muster {
namespace {

class CoordinationServiceShell : public CoordinationService::CallbackService {
 public:
  CoordinationServiceShell(CoordinationServer* server, const Clock* clock)
      : server_(server), clock_(clock) {}

  using Reactor = grpc::ServerUnaryReactor;
  using Context = grpc::CallbackServerContext;

  Reactor* Register(Context* context, const RegisterRequest* request,
                    RegisterReply* reply) override;
  Reactor* Watch(Context* context, const WatchRequest* request,
                 JobState* reply) override;
  Reactor* BeginEpoch(Context* context, const BeginEpochRequest* request,
                      BeginEpochReply* reply) override;
  Reactor* CommitEpoch(Context* context, const CommitEpochRequest* request,
                       CommitEpochReply* reply) override;
  Reactor* Step(Context* context, const StepRequest* request,
                StepReply* reply) override;
  Reactor* Finish(Context* context, const FinishRequest* request,
                  FinishReply* reply) override;
  Reactor* RequestSave(Context* context, const RequestSaveRequest* request,
                       RequestSaveReply* reply) override;
  Reactor* ReportSave(Context* context, const ReportSaveRequest* request,
                      ReportSaveReply* reply) override;
  Reactor* PauseRounds(Context* context, const PauseRoundsRequest* request,
                       PauseRoundsReply* reply) override;
  Reactor* GetJobState(Context* context, const JobStateRequest* request,
                       JobState* reply) override;

 private:
  // Calls `method` and answers with its result.
  template <typename Request, typename Reply>
  Reactor* Serve(Context* context, const Request& request, Reply* reply,
                 void (CoordinationServer::*method)(const Request&, absl::Time,
                                                    ReplyCallback<Reply>));

  CoordinationServer* const server_;
  const Clock* const clock_;
};

template <typename Request, typename Reply>
grpc::ServerUnaryReactor* CoordinationServiceShell::Serve(
    Context* context, const Request& request, Reply* reply,
    void (CoordinationServer::*method)(const Request&, absl::Time,
                                       ReplyCallback<Reply>)) {
  Reactor* const reactor = context->DefaultReactor();
  (server_->*method)(request, DeadlineOf(*context, *clock_),
                     Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* CoordinationServiceShell::Register(
    Context* context, const RegisterRequest* request, RegisterReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::Register);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::Watch(
    Context* context, const WatchRequest* request, JobState* reply) {
  return Serve(context, *request, reply, &CoordinationServer::Watch);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::BeginEpoch(
    Context* context, const BeginEpochRequest* request,
    BeginEpochReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::BeginEpoch);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::CommitEpoch(
    Context* context, const CommitEpochRequest* request,
    CommitEpochReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::CommitEpoch);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::Step(
    Context* context, const StepRequest* request, StepReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::Step);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::Finish(
    Context* context, const FinishRequest* request, FinishReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::Finish);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::RequestSave(
    Context* context, const RequestSaveRequest* request,
    RequestSaveReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::RequestSave);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::ReportSave(
    Context* context, const ReportSaveRequest* request,
    ReportSaveReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::ReportSave);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::PauseRounds(
    Context* context, const PauseRoundsRequest* request,
    PauseRoundsReply* reply) {
  return Serve(context, *request, reply, &CoordinationServer::PauseRounds);
}

grpc::ServerUnaryReactor* CoordinationServiceShell::GetJobState(
    Context* context, const JobStateRequest* /*request*/, JobState* reply) {
  Reactor* const reactor = context->DefaultReactor();
  server_->GetJobState(DeadlineOf(*context, *clock_), Answer(reactor, reply));
  return reactor;
}

}  // namespace

std::unique_ptr<grpc::Service> MakeCoordinationService(
    CoordinationServer* server, const Clock* clock) {
  return std::make_unique<CoordinationServiceShell>(server, clock);
}

}  // namespace muster
