#ifndef COMMON_RPC_COORDINATION_LINK_H_
#define COMMON_RPC_COORDINATION_LINK_H_

#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The CoordinationService of ps task 0, behind gRPC
// (worker/client/link/grpc_coordination_link.h), in this process
// (ps_server/service/coordination_server.h), or simulated. Calls behave as
// those of ParameterLink.
class CoordinationLink {
 public:
  virtual ~CoordinationLink() = default;

  virtual void Register(const RegisterRequest& request, absl::Time deadline,
                        ReplyCallback<RegisterReply> done) = 0;
  virtual void Watch(const WatchRequest& request, absl::Time deadline,
                     ReplyCallback<JobState> done) = 0;
  virtual void BeginEpoch(const BeginEpochRequest& request, absl::Time deadline,
                          ReplyCallback<BeginEpochReply> done) = 0;
  virtual void CommitEpoch(const CommitEpochRequest& request,
                           absl::Time deadline,
                           ReplyCallback<CommitEpochReply> done) = 0;
  virtual void Step(const StepRequest& request, absl::Time deadline,
                    ReplyCallback<StepReply> done) = 0;
  virtual void Finish(const FinishRequest& request, absl::Time deadline,
                      ReplyCallback<FinishReply> done) = 0;
  virtual void ReportSave(const ReportSaveRequest& request, absl::Time deadline,
                          ReplyCallback<ReportSaveReply> done) = 0;
  virtual void PauseRounds(const PauseRoundsRequest& request,
                           absl::Time deadline,
                           ReplyCallback<PauseRoundsReply> done) = 0;
};

}  // namespace muster

#endif  // COMMON_RPC_COORDINATION_LINK_H_
