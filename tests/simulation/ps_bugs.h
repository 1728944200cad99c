#ifndef TESTS_SIMULATION_PS_BUGS_H_
#define TESTS_SIMULATION_PS_BUGS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/coordinator.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/row_bugs.h"

namespace muster {

// The planted bug of one start of a ps task: changes what its shard and its
// coordinator are asked, and what the shard says of itself. Without a bug it
// changes nothing.
class PsBugs {
 public:
  // `shard` outlives the bugs.
  PsBugs(Bug bug, int task, uint64_t incarnation, ParameterShard* shard)
      : bug_(bug), task_(task), incarnation_(incarnation), shard_(shard) {}

  void Forge(Fence* fence) const;
  void Forge(StepToken* token);
  void See(const DefineRequest& define);
  void Forge(PushPart* header);
  void Forge(Frame<PushPart>* push);
  void Forge(Frame<LoadPart>* load) const;
  void Forge(const Coordinator& coordinator, StepRequest* request);
  void ForgeLease(const Coordinator& coordinator, Sender* sender) const;

  RowBugs& rows() { return rows_; }

  // The push is to be answered as a duplicate.
  bool TakesForDuplicate(const PushPart& header);

  // The shard is to keep the model that it has, and says from here on that it
  // is at this epoch.
  bool KeepOldModel(int64_t new_epoch);
  bool keeps_old_model() const { return shown_epoch_ != 0; }

  ShardState Shown(ShardState state) const;
  uint64_t ShownIncarnation() const;

  // In place of the values of the cut.
  absl::StatusOr<Frame<SnapshotPart>> ReadValuesOfNow(
      const ReadSnapshotRequest& request);

 private:
  const Bug bug_;
  RowBugs rows_{bug_};
  const int task_;
  const uint64_t incarnation_;
  ParameterShard* const shard_;

  // kBlockMisplaced: makes of a slice that is a whole block the next one of its
  // tensor that is here, and of the last one the first.
  void Misplace(TensorSlice* slice) const;

  int64_t forged_step_ = 0;
  // kMarksWithoutNamespace: whose step's part came first, by task.
  std::map<std::tuple<TaskKey, int64_t, int32_t>, std::string> first_of_;
  // Where the whole blocks of each tensor begin that are here, by name.
  std::map<std::string, std::set<int64_t>> blocks_;
  int64_t open_round_ = 0;
  std::map<TaskKey, int64_t> forged_steps_;
  // The newest push of each part of each worker, by (worker, part).
  std::map<std::pair<int, int>, absl::Cord> newest_push_;
  std::set<std::string> state_tensors_;
  // kMixedEpochs: the epoch that it says it is at; 0: the true one.
  int64_t shown_epoch_ = 0;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_PS_BUGS_H_
