#ifndef TESTS_SIMULATION_SIM_LINKS_H_
#define TESTS_SIMULATION_SIM_LINKS_H_

#include <map>
#include <tuple>
#include <utility>

#include "common/rpc/coordination_link.h"
#include "common/rpc/parameter_link.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/sim_caller.h"

namespace muster {

// A worker's way to one ps task's shard over the simulated network. Tells the
// oracle what was pushed and what was acknowledged, as production sees it.
class SimParameterLink : public ParameterLink {
 public:
  // All outlive the link.
  SimParameterLink(SimCaller* caller, Oracle* oracle, int ps, Bug bug)
      : caller_(caller), oracle_(oracle), ps_(ps), bug_(bug) {}
  // Ends the calls of this process, as closing its connections does.
  ~SimParameterLink() override;

  void Hello(const HelloRequest& request, absl::Time deadline,
             ReplyCallback<HelloReply> done) override;
  void Define(const DefineRequest& request, absl::Time deadline,
              ReplyCallback<DefineReply> done) override;
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Seal(const SealRequest& request, absl::Time deadline,
            ReplyCallback<SealReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void BeginSnapshot(const BeginSnapshotRequest& request, absl::Time deadline,
                     ReplyCallback<BeginSnapshotReply> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;
  void EndSnapshot(const EndSnapshotRequest& request, absl::Time deadline,
                   ReplyCallback<EndSnapshotReply> done) override;

 private:
  template <typename Reply, typename Request>
  void Send(Request request, absl::Time deadline, ReplyCallback<Reply> done);
  void ForgeIdentity(PushPart* header);

  SimCaller* const caller_;
  Oracle* const oracle_;
  const int ps_;
  const Bug bug_;
  // kNewIdentityOnRetry: sends of (step, part).
  std::map<std::pair<int64_t, int32_t>, int> sends_;
};

// A worker's way to the coordinator on ps task 0.
class SimCoordinationLink : public CoordinationLink {
 public:
  // All outlive the link.
  SimCoordinationLink(SimCaller* caller, SimNetwork* network, Oracle* oracle)
      : caller_(caller), network_(network), oracle_(oracle) {}

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
  template <typename Reply, typename Request>
  void Send(const Request& request, absl::Time deadline,
            ReplyCallback<Reply> done);
  // One that only the holder of the chief lease may send.
  template <typename Reply, typename Request>
  void SendAsChief(const Request& request, absl::Time deadline,
                   ReplyCallback<Reply> done);

  SimCaller* const caller_;
  SimNetwork* const network_;
  Oracle* const oracle_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_LINKS_H_
