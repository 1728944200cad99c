#ifndef PS_SERVER_SHARD_DUPLICATE_MARKS_H_
#define PS_SERVER_SHARD_DUPLICATE_MARKS_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/protocol.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The answer that a part got.
struct PartOutcome {
  // The step's staleness, in updates.
  int64_t staleness = 0;
  // Whether a part of the step came after the step's update.
  bool late = false;
};

// A model's memory of each worker, so that a push is applied once: the newest
// step, which of its parts were applied, and the outcomes of the last few
// steps. A worker starts a step only when it is done with the one before, so
// every push of an older step is a duplicate. Under 1 KiB a worker, whatever
// happens. Not thread-safe.
//
// REQUIRES of every sender: it is the current incarnation of its task.
class DuplicateMarks {
 public:
  // 4 GiB of float32 on one shard at 1 MiB a part.
  static constexpr int32_t kMaxParts = kMaxStepParts;

  // Returns its step's outcome if (step, part) was applied (or dropped as late)
  // before, nothing if it is new.
  // REQUIRES: step >= 1, 0 <= part < parts <= kMaxParts. Errors:
  // InvalidArgument if the step has another number of parts.
  absl::StatusOr<std::optional<PartOutcome>> FindOutcome(const Sender& sender,
                                                         int64_t step,
                                                         int32_t part,
                                                         int32_t parts) const;

  // Notes that (step, part) was applied, or dropped as late. `outcome` is that
  // of this part; the step keeps the staleness of its first part, and is late
  // from its first late part on. Returns the step's. `counts`: the sender's
  // progress once the step is done; empty: not known.
  // REQUIRES: FindOutcome has just found nothing.
  PartOutcome Record(const Sender& sender, int64_t step, int32_t part,
                     int32_t parts, PartOutcome outcome,
                     const StepCounts& counts = {});

  // Whether no part of `step` was applied yet.
  bool IsNewStep(const Sender& sender, int64_t step) const;

  // Forgets the steps of the sender's task: another incarnation has taken over.
  // The newest whole step of the old one stays until the new one has one: the
  // values have it.
  void Forget(const Sender& sender);
  // Forgets all steps: a new model epoch begins.
  void Clear();

  // The newest applied step of each worker that has pushed.
  std::vector<DuplicateMark> Export() const;

  // The newest step of each task that has counts and was applied whole.
  std::vector<HeldStep> HeldSteps() const;

  // Steps that a worker left before all their parts came: it died in between.
  int64_t unfinished_steps() const { return unfinished_steps_; }

 private:
  static constexpr int kRememberedSteps = 4;

  struct StepOutcome {
    int64_t step = 0;
    PartOutcome outcome;
  };

  struct Worker {
    uint64_t incarnation = 0;
    int64_t step = 0;  // newest
    int32_t parts = 0;
    std::bitset<kMaxParts> applied;
    // A ring; the newest is the one of `step`.
    std::array<StepOutcome, kRememberedSteps> outcomes;

    bool IsWhole() const {
      return applied.count() == static_cast<size_t>(parts);
    }
  };
  static_assert(sizeof(Worker) < 1024, "the promise above");

  // Null if the sender's task has pushed nothing.
  const Worker* Find(const Sender& sender) const;
  // Counts the worker's step if parts of it are missing: none will come.
  void CloseStep(const Worker& worker);

  std::map<TaskKey, Worker> workers_;
  std::map<TaskKey, HeldStep> held_;
  int64_t unfinished_steps_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_DUPLICATE_MARKS_H_
