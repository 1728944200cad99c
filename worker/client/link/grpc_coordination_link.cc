#include "worker/client/link/grpc_coordination_link.h"

#include <utility>

namespace muster {
namespace {

constexpr char kRegister[] = "/muster.CoordinationService/Register";
constexpr char kWatch[] = "/muster.CoordinationService/Watch";
constexpr char kBeginEpoch[] = "/muster.CoordinationService/BeginEpoch";
constexpr char kCommitEpoch[] = "/muster.CoordinationService/CommitEpoch";
constexpr char kStep[] = "/muster.CoordinationService/Step";
constexpr char kFinish[] = "/muster.CoordinationService/Finish";
constexpr char kReportSave[] = "/muster.CoordinationService/ReportSave";
constexpr char kPauseRounds[] = "/muster.CoordinationService/PauseRounds";

}  // namespace

GrpcCoordinationLink::GrpcCoordinationLink(
    const PeerName& peer,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings)
    : caller_(peer, OpenChannel(peer.address, credentials, settings)) {}

void GrpcCoordinationLink::Register(const RegisterRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<RegisterReply> done) {
  caller_.CallMessage(kRegister, request, deadline, std::move(done));
}

void GrpcCoordinationLink::Watch(const WatchRequest& request,
                                 absl::Time deadline,
                                 ReplyCallback<JobState> done) {
  caller_.CallMessage(kWatch, request, deadline, std::move(done));
}

void GrpcCoordinationLink::BeginEpoch(const BeginEpochRequest& request,
                                      absl::Time deadline,
                                      ReplyCallback<BeginEpochReply> done) {
  caller_.CallMessage(kBeginEpoch, request, deadline, std::move(done));
}

void GrpcCoordinationLink::CommitEpoch(const CommitEpochRequest& request,
                                       absl::Time deadline,
                                       ReplyCallback<CommitEpochReply> done) {
  caller_.CallMessage(kCommitEpoch, request, deadline, std::move(done));
}

void GrpcCoordinationLink::Step(const StepRequest& request, absl::Time deadline,
                                ReplyCallback<StepReply> done) {
  caller_.CallMessage(kStep, request, deadline, std::move(done));
}

void GrpcCoordinationLink::Finish(const FinishRequest& request,
                                  absl::Time deadline,
                                  ReplyCallback<FinishReply> done) {
  caller_.CallMessage(kFinish, request, deadline, std::move(done));
}

void GrpcCoordinationLink::ReportSave(const ReportSaveRequest& request,
                                      absl::Time deadline,
                                      ReplyCallback<ReportSaveReply> done) {
  caller_.CallMessage(kReportSave, request, deadline, std::move(done));
}

void GrpcCoordinationLink::PauseRounds(const PauseRoundsRequest& request,
                                       absl::Time deadline,
                                       ReplyCallback<PauseRoundsReply> done) {
  caller_.CallMessage(kPauseRounds, request, deadline, std::move(done));
}

}  // namespace muster
