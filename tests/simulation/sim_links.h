#ifndef TESTS_SIMULATION_SIM_LINKS_H_
#define TESTS_SIMULATION_SIM_LINKS_H_

#include <map>
#include <string>
#include <utility>

#include "common/rpc/link.h"
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

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline, ReplyCallback<std::string> done) override;
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;

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
class SimCoordinationLink : public Link {
 public:
  // All outlive the link. `space`: the namespace of the worker's job.
  SimCoordinationLink(SimCaller* caller, SimNetwork* network, Oracle* oracle,
                      std::string space)
      : caller_(caller),
        network_(network),
        oracle_(oracle),
        space_(std::move(space)) {}

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline, ReplyCallback<std::string> done) override;

 private:
  SimCaller* const caller_;
  SimNetwork* const network_;
  Oracle* const oracle_;
  const std::string space_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_LINKS_H_
