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
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/sim_caller.h"
#include "tests/simulation/sim_coordination.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_shard.h"
#include "tests/simulation/sim_turns.h"
#include "tests/simulation/simulator.h"

namespace muster {

// One start of a ps task: a SimShard, and on task 0 a SimCoordination for each
// job, which take their turns as CoordinationServer's. Other tasks watch task 0
// and end with the job, as JobWatcher does; those that serve many jobs do not
// end. Lives as long as the simulation; what comes after Die has no effect.
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
    // The simulation's, and a message's time, which is that of a pause in a
    // turn at most.
    uint64_t seed = 0;
    absl::Duration latency;
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
  uint64_t incarnation() const { return shard_.bugs().ShownIncarnation(); }
  SimCaller& caller() { return caller_; }
  SimProcess& process() { return process_; }
  // Task 0 has waited as long for this other ps task to learn of the end as
  // production promises.
  bool WaitedFor(int task) const;
  // REQUIRES: task 0.
  bool KeptModelOf(const std::string& space, uint64_t incarnation) const;
  // Null if no such job has come, or on another task.
  const Coordinator* FindCoordinator(const std::string& space) const;
  SimShard& shard() { return shard_; }
  const SimShard& shard() const { return shard_; }

  // The calls without tensors, as they come from a network; those of
  // CoordinationService at task 0 only.
  ServedCalls& calls() { return calls_; }

  void RequestSave(const RequestSaveRequest& request, absl::Time deadline,
                   const ReplyCallback<RequestSaveReply>& done);
  void Watch(const WatchRequest& request, absl::Time deadline,
             const ReplyCallback<JobState>& done);

 private:
  absl::Time Now() const { return options_.simulator->Now(); }
  SimTurns::Options TurnOptions();
  SimShard::Options ShardOptions();
  void ServeCoordinator();
  SimCoordination::Options JobOptions(const std::string& space);
  // Whose job a request is.
  struct JobOf {
    absl::string_view what;
    std::string space;
    // It may be a new one.
    bool is_brought = false;
  };
  // As CoordinationServer's.
  absl::StatusOr<SimCoordination*> FindJob(const JobOf& of);
  // Answers in the coordinators' turn: `answer` with the job, `done` with why
  // there is none.
  template <typename Reply>
  void AskJob(const JobOf& of, absl::Time deadline,
              const ReplyCallback<Reply>& done,
              const std::function<void(SimCoordination&)>& answer);
  // Lets the jobs' time pass; returns how long they may be left alone.
  absl::Duration AdvanceJobs();
  // Every ps task knows that the job is done.
  void OnJobEnd();
  void End();
  // As PsTask::Drain: has every strand carry out what it took, `cut` last of
  // the coordinators', and goes on with `then` on a thread of its own.
  void CloseTurns(std::function<void(SimCoordination&)> cut,
                  std::function<void()> then);
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
  SimShard shard_;
  // Only on task 0.
  std::optional<NamespaceTable<SimCoordination>> jobs_;
  bool alive_ = false;
  bool ended_ = false;
  bool ending_ = false;
  bool closing_ = false;
  // When task 0 left.
  absl::Time left_ = absl::InfiniteFuture();
  // After a signal it waits only so long for the others to learn of the end.
  bool gave_up_ = false;
  // After a signal.
  std::vector<std::unique_ptr<Save>> saves_;
  int unconfirmed_ = 0;
  int64_t watched_version_ = 0;

  // Last: their threads use all of the above. The turns only on task 0.
  std::unique_ptr<SimTurns> job_turns_;
  std::unique_ptr<ClockThread> closer_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_PS_H_
