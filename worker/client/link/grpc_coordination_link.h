#ifndef WORKER_CLIENT_LINK_GRPC_COORDINATION_LINK_H_
#define WORKER_CLIENT_LINK_GRPC_COORDINATION_LINK_H_

#include <memory>

#include "common/rpc/channel_settings.h"
#include "common/rpc/coordination_link.h"
#include "grpcpp/security/credentials.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/unary_caller.h"

namespace muster {

// A CoordinationLink over gRPC, on a connection of its own: a Watch, which is
// also the heartbeat, never waits behind parts. Otherwise as GrpcParameterLink.
class GrpcCoordinationLink : public CoordinationLink {
 public:
  GrpcCoordinationLink(
      const PeerName& peer,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const ChannelSettings& settings = {});

  void Register(const RegisterRequest& request, absl::Time deadline,
                ReplyCallback<RegisterReply> done) override;
  void Watch(const WatchRequest& request, absl::Time deadline,
             ReplyCallback<JobState> done) override;
  void BeginEpoch(const BeginEpochRequest& request, absl::Time deadline,
                  ReplyCallback<BeginEpochReply> done) override;
  void CommitEpoch(const CommitEpochRequest& request, absl::Time deadline,
                   ReplyCallback<CommitEpochReply> done) override;
  void Step(const StepRequest& request, absl::Time deadline,
            ReplyCallback<StepReply> done) override;
  void Finish(const FinishRequest& request, absl::Time deadline,
              ReplyCallback<FinishReply> done) override;
  void ReportSave(const ReportSaveRequest& request, absl::Time deadline,
                  ReplyCallback<ReportSaveReply> done) override;
  void PauseRounds(const PauseRoundsRequest& request, absl::Time deadline,
                   ReplyCallback<PauseRoundsReply> done) override;

 private:
  UnaryCaller caller_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_GRPC_COORDINATION_LINK_H_
