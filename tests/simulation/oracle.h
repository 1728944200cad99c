#ifndef TESTS_SIMULATION_ORACLE_H_
#define TESTS_SIMULATION_ORACLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/simulation/oracle_clocks.h"
#include "tests/simulation/oracle_rows.h"
#include "tests/simulation/push_sums.h"
#include "tests/simulation/shard_cuts.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/simulator.h"
#include "tests/testing/fake_file_system.h"

namespace muster {

class SimPs;

// Judges what must hold, whatever happens: README.md lists the promises. It
// sees what production asked for and was told on both ends of every link, keeps
// plain sets of it, and compares the shards, the coordinator and the disk with
// them.
class Oracle {
 public:
  // All outlive the oracle.
  Oracle(Simulator* simulator, SimNetwork* network, const SimModel* model,
         FakeFileSystem* disk, std::string train_dir)
      : simulator_(simulator),
        network_(network),
        model_(model),
        disk_(disk),
        train_dir_(std::move(train_dir)) {}

  // The first broken promise; "" if none.
  const std::string& violation() const { return violation_; }
  void Fail(absl::string_view what);

  // ---- A worker's side -------------------------------------------------
  void PushSent(int ps, const PushPart& header);
  void PushAcknowledged(int ps, const PushPart& header, const PushReply& reply);
  // See OracleClocks.
  int64_t changes() const { return clocks_.changes(); }
  void StepBegun(uint64_t incarnation, int64_t changes) {
    clocks_.Pulls(incarnation, changes);
  }
  // Every shard has acknowledged the step, in the epoch that ps task 0 had
  // this incarnation in.
  void StepCompleted(const Sender& sender, int64_t epoch,
                     uint64_t first_ps_incarnation, int64_t step);
  // The step's gradients are of these rows.
  void StepTrains(uint64_t incarnation, int64_t epoch, int64_t step,
                  const RowLease& rows) {
    FailIfAny(rows_.StepTrains(incarnation, epoch, step, rows));
  }
  // The coordinator has answered the report.
  void StepConfirmed(const StepRequest& request);
  // The chief says that this checkpoint is on the disk.
  void Saved(const std::string& path);

  // ---- A ps' side ------------------------------------------------------
  void AfterPush(SimPs* ps);
  void AfterCut(SimPs* ps, const BeginSnapshotReply& cut);
  void AfterCommit(const CommitEpochRequest& request);
  void AfterStep(const Coordinator& coordinator);
  // This start of ps task 0 has said which steps of a cut it counts: all shards
  // hold them, whether or not their workers hear of it.
  void CutConfirmed(uint64_t ps_incarnation, const ConfirmCutRequest& request,
                    const ConfirmCutReply& reply);
  void AtJobEnd(const JobState& state);
  // A job that was interrupted goes on, with ps tasks that keep serving.
  void JobGoesOn() { end_.reset(); }
  // This start of ps task 0 has given the token out.
  void TokenGiven(uint64_t ps_incarnation, int64_t epoch,
                  const StepToken& token);
  // Looks at every worker's count of steps, before a step is granted.
  void SampleClocks(uint64_t ps_incarnation, const Coordinator& coordinator);
  void StepGranted(const Sender& sender, const StepReply& reply);
  // This start of ps task 0 has this start of a task registered from here on.
  void Registered(uint64_t ps_incarnation, const Sender& sender);
  // This start of ps task 0 has this chief registered from here on.
  void ChiefRegistered(uint64_t ps_incarnation, const Sender& chief) {
    chiefs_[ps_incarnation] = chief.incarnation();
  }
  // It took what only the holder of the chief lease may ask for.
  void LeaseUsed(uint64_t ps_incarnation, const Sender& sender);
  // A ps task leaves and says that nothing is lost with it.
  void PsLeavesSaved(int task);
  // The chief was asked to end the job early.
  void ChiefInterrupted() { interrupted_ = true; }
  bool interrupted() const { return interrupted_; }

  // ---- The end ---------------------------------------------------------
  // As the coordinator saw it; none before.
  const std::optional<JobState>& end() const { return end_; }
  // The job has ended, and its last step is on no disk yet.
  bool HasEndedUnsaved() const {
    return end_.has_value() && newest_saved_ < end_->global_step();
  }
  // The newest checkpoint is of the last step.
  void CheckDiskAtEnd();
  // The hash of the parameters in the newest checkpoint; 0 if there is none.
  uint64_t NewestParameters();

  int64_t restores() const { return restores_; }
  int64_t saves() const { return saves_; }

 private:
  // One shard in one epoch.
  struct Shard {
    // The epoch's, and the start of ps task 0 that has committed it.
    int64_t global_step = 0;
    uint64_t first = 0;
    // The values that it began with, by block of the shard; empty before the
    // commit.
    TensorValues base;
    // The rows of the checkpoint that it began with, by part.
    std::map<int, RowVisits> rows;
    std::map<std::pair<int, int>, PushSums> pushes;  // by (part, worker)
  };
  struct Epoch {
    int64_t global_step = 0;
    // (worker, incarnation, step)
    std::set<std::tuple<int, uint64_t, int64_t>> completed;
    // Synchronous replication: the steps of each update.
    std::map<int64_t, std::vector<std::tuple<int, uint64_t, int64_t>>> chosen;
  };

  Shard& ShardOf(uint64_t incarnation, int64_t epoch) {
    return shards_[{incarnation, epoch}];
  }
  void CheckShard(SimPs* ps);
  void CheckStaleness(const PushPart& header, const PushReply& reply);
  // The marks of a cut have every push that was acknowledged before.
  void CheckMarks(SimPs* ps, const BeginSnapshotReply& cut);
  // Synchronous replication: the shard has made exactly the first updates.
  void CheckRounds(const SimPs& ps, const Shard& shard,
                   const TensorValues& values);
  void CheckChosen(const Epoch& epoch, const StepToken& token);
  // The job's, of those that the ps tasks serve.
  const std::string& space() const { return model_->scenario.space; }
  bool is_sync() const { return model_->scenario.mode == Mode::kSync; }
  // In block `index` of the ps task.
  void CheckCounter(const SimPs& ps, const Shard& shard, int index, int worker,
                    const TensorValues& values);
  void CheckRestored(const CommitEpochRequest& request, SimPs* ps,
                     const TensorValues& values);
  void FailIfAny(const std::string& broken) {
    if (!broken.empty()) Fail(broken);
  }
  // By part of the shard, whose values these are.
  std::map<int, HeldRows> RowsHeld(const SimPs& ps, const TensorValues& values);
  std::set<uint64_t> MarkedStarts(const CheckpointManifest& manifest) const;
  // Of a ps task, as the checkpoint of this step was made of them.
  std::map<int, RowVisits> RestoredRows(int64_t global_step, int ps);
  // The job has no more rows left than it may leave out.
  void CheckRowsAtEnd(int64_t done);
  // As many reported checkpoints are there as are to be kept.
  void CheckRetention();
  // The checkpoint's values of one ps task's blocks.
  std::optional<TensorValues> ReadCheckpoint(const std::string& path, int ps);
  std::string PathOf(int64_t global_step) const;

  Simulator* const simulator_;
  SimNetwork* const network_;
  const SimModel* const model_;
  FakeFileSystem* const disk_;
  const std::string train_dir_;

  std::string violation_;
  std::map<std::pair<uint64_t, int64_t>, Shard> shards_;
  // By (ps task, epoch).
  std::map<std::pair<int, int64_t>, ShardCuts> cuts_;
  // By (epoch, incarnation of ps task 0).
  std::map<std::pair<int64_t, uint64_t>, Epoch> epochs_;
  // The newest registered start, by start of ps task 0 and task.
  std::map<std::pair<uint64_t, int>, uint64_t> registered_;
  // The newest registered chief, by start of ps task 0.
  std::map<uint64_t, uint64_t> chiefs_;
  // Synchronous replication: the round of each step, by incarnation and step.
  std::map<std::pair<uint64_t, int64_t>, int64_t> round_of_;
  OracleRows rows_;
  // The steps that were reported as given up, and those of cuts that the
  // coordinator does not count.
  PushSums::Steps uncounted_;
  // Bounded staleness.
  OracleClocks clocks_;
  int64_t newest_saved_ = -1;
  // The steps of the checkpoints that were reported.
  std::set<int64_t> reported_;
  bool interrupted_ = false;
  int64_t restores_ = 0;
  int64_t saves_ = 0;
  int64_t pushes_ = 0;
  std::optional<JobState> end_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_ORACLE_H_
