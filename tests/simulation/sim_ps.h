#ifndef TESTS_SIMULATION_SIM_PS_H_
#define TESTS_SIMULATION_SIM_PS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/served_calls.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/namespace_table.h"
#include "ps_server/coordinator/coordinator.h"
#include "ps_server/service/save_wait.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/ps_bugs.h"
#include "tests/simulation/shard_audit.h"
#include "tests/simulation/sim_caller.h"
#include "tests/simulation/sim_coordination.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/simulator.h"

namespace muster {

// One start of a ps task: production's ParameterShard, called as
// ps_server/shard_server calls it, and on task 0 a SimCoordination for each
// job. Other tasks watch task 0 and end with the job, as JobWatcher does; those
// that serve many jobs do not end. Lives as long as the simulation; what comes
// after Die has no effect.
class SimPs {
 public:
  struct Options {
    Simulator* simulator = nullptr;
    SimNetwork* network = nullptr;
    // The jobs' by namespace.
    std::map<std::string, Oracle*> oracles;
    // As ps_server --keep_serving.
    bool keeps_serving = false;
    int task = 0;
    uint64_t incarnation = 0;
    // Those of the cluster: the default namespace's.
    int num_workers = 0;
    Bug bug = Bug::kNone;
    // On task 0: a worker has said that it finishes.
    std::function<void()> on_finish;
    // It has ended after a signal, with code 143.
    std::function<void(SimPs*)> on_exit;
  };

  explicit SimPs(const Options& options);

  // Serves from here on.
  void Start();
  // kill -9.
  void Die();
  // SIGTERM: has the chief save, as PsTask and SaveAsker do, and leaves.
  void Terminate();
  bool alive() const { return alive_; }
  // It has ended by itself, with code 0: the job is done.
  bool ended() const { return ended_; }
  int task() const { return options_.task; }
  // As its peers see it.
  uint64_t incarnation() const { return bugs_.ShownIncarnation(); }
  SimCaller& caller() { return caller_; }
  SimProcess& process() { return process_; }
  // Task 0 has waited as long for this other ps task to learn of the end as
  // production promises.
  bool WaitedFor(int task) const;
  // REQUIRES: task 0.
  bool KeptModelOf(const std::string& space, uint64_t incarnation) const;
  // Null if no such job has come, or on another task.
  const Coordinator* FindCoordinator(const std::string& space) const;
  // EMPTY if there is no such namespace.
  ShardState State(const std::string& space) const;

  // The parameters of a READY model, those of these slices; null if it is not
  // READY.
  std::optional<TensorValues> Values(const std::string& space,
                                     const std::vector<TensorSlice>& slices) {
    return AuditShard(&shard_, options_.incarnation, space, slices);
  }

  // The calls without tensors, as they come from a network; those of
  // CoordinationService at task 0 only.
  ServedCalls& calls() { return calls_; }

  absl::StatusOr<HelloReply> Handle(HelloRequest request);
  absl::StatusOr<DefineReply> Handle(DefineRequest request);
  absl::StatusOr<LoadReply> Handle(Frame<LoadPart> request);
  absl::StatusOr<SealReply> Handle(SealRequest request);
  absl::StatusOr<Frame<PullReply>> Handle(PullRequest request);
  absl::StatusOr<Frame<PushReply>> Handle(Frame<PushPart> request);
  absl::StatusOr<BeginSnapshotReply> Handle(BeginSnapshotRequest request);
  absl::StatusOr<Frame<SnapshotPart>> Handle(ReadSnapshotRequest request);
  absl::StatusOr<EndSnapshotReply> Handle(EndSnapshotRequest request);

  absl::StatusOr<RequestSaveReply> Handle(const RequestSaveRequest& request);
  void Watch(const WatchRequest& request, ReplyCallback<JobState> done);

 private:
  absl::Time Now() const { return options_.simulator->Now(); }
  Oracle* OracleOf(const Sender& sender) const {
    return options_.oracles.at(sender.namespace_());
  }
  void ServeShard();
  void ServeCoordinator();
  SimCoordination::Options JobOptions(const std::string& space);
  // As CoordinationServer's.
  absl::StatusOr<SimCoordination*> FindJob(absl::string_view what,
                                           const std::string& space,
                                           bool brings);
  // Every ps task knows that the job is done.
  void OnJobEnd();
  void End();
  // Watches task 0.
  void WatchJob();
  void ConfirmEnd(int64_t version, int attempt);
  Sender SelfIn(const std::string& space) const;
  WatchRequest MakeWatch(const std::string& space, int64_t version,
                         absl::Duration wait) const;
  template <typename Reply, typename Request, typename Serve>
  void CallFirst(const Request& request, absl::Time deadline,
                 ReplyCallback<Reply> done, Serve serve);

  // ---- After a signal: as PsTask and its SaveAskers ----------------------
  // One namespace's.
  struct Save {
    std::string space;
    SaveWait wait;
    int64_t version = 0;
    SaveWait::Verdict verdict = SaveWait::Verdict::kWait;
  };
  // The namespaces that have a model here; the default one if none has.
  std::vector<std::string> SpacesToSave() const;
  void AskForSave(Save& save);
  void WatchForSave(Save& save);
  void OnVerdict(Save& save, SaveWait::Verdict verdict);
  void ConfirmSaves();
  void OnConfirmed();
  void OnVerdicts();
  void OnJobsDone();
  void Leave(size_t next);
  void Drain();

  const Options options_;
  ServedCalls calls_;
  SimProcess process_;
  SimCaller caller_;
  ParameterShard shard_;
  PsBugs bugs_;
  // The shard's; it says so again where it keeps an old model.
  DefineReply last_define_;
  // Only on task 0.
  std::optional<NamespaceTable<SimCoordination>> jobs_;
  bool alive_ = false;
  bool ended_ = false;
  bool ending_ = false;
  // When task 0 left.
  absl::Time left_ = absl::InfiniteFuture();
  // After a signal it waits only so long for the others to learn of the end.
  bool gave_up_ = false;
  // After a signal.
  std::vector<std::unique_ptr<Save>> saves_;
  int unconfirmed_ = 0;
  int64_t watched_version_ = 0;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_PS_H_
