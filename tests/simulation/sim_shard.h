#ifndef TESTS_SIMULATION_SIM_SHARD_H_
#define TESTS_SIMULATION_SIM_SHARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/link.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/served_calls.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/ps_bugs.h"
#include "tests/simulation/shard_audit.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_turns.h"

namespace muster {

// The shard of one start of a ps task: production's ParameterShard, asked as
// ShardServer asks it, one request after another.
class SimShard {
 public:
  struct Options {
    SimTurns::Options turns;
    ShardOptions shard;
    // The jobs' by namespace.
    std::map<std::string, Oracle*> oracles;
    Bug bug = Bug::kNone;
    // Whose shard it is.
    SimPs* ps = nullptr;
  };

  explicit SimShard(const Options& options);

  // Has the calls without tensors answered here.
  void Serve(ServedCalls* calls);

  // Answers `request` in its turn. A request with tensors.
  template <typename Reply, typename Request>
  void Ask(Request request, absl::Time deadline, ReplyCallback<Reply> done);

  PsBugs& bugs() { return bugs_; }
  const PsBugs& bugs() const { return bugs_; }
  SimTurns& turns() { return turns_; }
  // The namespaces that have a model here.
  std::vector<std::string> ReadySpaces() const;
  // EMPTY if there is no such namespace.
  ShardState State(const std::string& space) const;
  // The parameters of a READY model, those of these slices; null if it is not
  // READY.
  std::optional<TensorValues> Values(const std::string& space,
                                     const std::vector<TensorSlice>& slices) {
    return AuditShard(&shard_, options_.shard.incarnation, space, slices);
  }

 private:
  template <typename M, typename Answer>
  void ServeRow(ServedCalls* calls, const M& row, Answer answer);
  absl::StatusOr<HelloReply> Handle(HelloRequest request);
  absl::StatusOr<DefineReply> Handle(DefineRequest request);
  absl::StatusOr<LoadReply> Handle(Frame<LoadPart> request);
  absl::StatusOr<SealReply> Handle(SealRequest request);
  absl::StatusOr<Frame<PullReply>> Handle(PullRequest request);
  absl::StatusOr<Frame<PullRowsReply>> Handle(Frame<PullRowsRequest> request);
  absl::StatusOr<Frame<PushReply>> Handle(Frame<PushPart> request);
  absl::StatusOr<BeginSnapshotReply> Handle(BeginSnapshotRequest request);
  absl::StatusOr<Frame<SnapshotPart>> Handle(ReadSnapshotRequest request);
  absl::StatusOr<EndSnapshotReply> Handle(EndSnapshotRequest request);
  Oracle* OracleOf(const Sender& sender) const {
    return options_.oracles.at(sender.namespace_());
  }

  const Options options_;
  ParameterShard shard_;
  PsBugs bugs_;
  // The shard's; it says so again where it keeps an old model.
  DefineReply last_define_;
  // Last: its threads use all of the above.
  SimTurns turns_;
};

template <typename Reply, typename Request>
void SimShard::Ask(Request request, absl::Time deadline,
                   ReplyCallback<Reply> done) {
  turns_.Ask(
      deadline,
      [this, request = std::move(request), done]() mutable {
        done(Handle(std::move(request)));
      },
      [done](const absl::Status& why) { done(why); });
}

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_SHARD_H_
