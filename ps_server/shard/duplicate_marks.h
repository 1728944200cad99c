#ifndef PS_SERVER_SHARD_DUPLICATE_MARKS_H_
#define PS_SERVER_SHARD_DUPLICATE_MARKS_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/protocol.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/listed_tasks.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The answer that a part got.
struct PartOutcome {
  // The step's staleness, in updates.
  int64_t staleness = 0;
  // Whether a part of the step came after the step's update.
  bool late = false;
};

// The shard's memory of each worker, so that a push is applied once: the newest
// step, which of its parts were applied, and the outcomes of the last few
// steps. A worker starts a step only when it is done with the one before,
// so every push of an older step is a duplicate. Under 1 KiB a worker,
// whatever happens.
//
// An incarnation is current from its Hello until another one of the same task
// takes over; then it is retired for good. Not thread-safe.
class DuplicateMarks {
 public:
  // 4 GiB of float32 on one shard at 1 MiB a part.
  static constexpr int32_t kMaxParts = kMaxStepParts;
  // Tasks beside those of the cluster, which need not list the workers: as many
  // as a cluster can have.
  static constexpr size_t kMaxTasks = 4096;
  // "worker", "chief", "evaluator", "ps".
  static constexpr size_t kMaxJobName = 32;

  // There is always room for the listed tasks.
  explicit DuplicateMarks(ListedTasks listed = ListedTasks())
      : listed_(std::move(listed)) {}

  // Makes `sender` the current incarnation of its task and returns 0. If
  // another one is current, nothing changes, and the number that `takeover` has
  // to be for that is returned (HelloReply.takeover). Repeatable.
  // Errors: InvalidArgument for incarnation 0 or a longer job name;
  // FailedPrecondition ("fenced:") if it was retired; ResourceExhausted beyond
  // kMaxTasks that are not listed.
  absl::StatusOr<uint64_t> Admit(const Sender& sender, uint64_t takeover);

  // OK if `sender` is the current incarnation of its task, else
  // FailedPrecondition ("fenced: ...").
  absl::Status CheckCurrent(const Sender& sender) const;

  // The current incarnation of the sender's task; 0: none has come.
  uint64_t CurrentIncarnation(const Sender& sender) const;

  // Returns its step's outcome if (step, part) was applied (or dropped as late)
  // before, nothing if it is new. REQUIRES: CheckCurrent(sender) is OK, step >=
  // 1, 0 <= part < parts <= kMaxParts. Errors: InvalidArgument if the step has
  // another number of parts.
  absl::StatusOr<std::optional<PartOutcome>> FindOutcome(const Sender& sender,
                                                         int64_t step,
                                                         int32_t part,
                                                         int32_t parts) const;

  // Notes that (step, part) was applied, or dropped as late. `outcome` is that
  // of this part; the step keeps the staleness of its first part, and is late
  // from its first late part on. Returns the step's.
  // REQUIRES: FindOutcome has just found nothing.
  PartOutcome Record(const Sender& sender, int64_t step, int32_t part,
                     int32_t parts, PartOutcome outcome);

  // Whether no part of `step` was applied yet.
  bool IsNewStep(const Sender& sender, int64_t step) const;

  // Forgets all steps (a new model epoch), not the incarnations.
  void ForgetSteps();

  // The newest applied step of each worker that has pushed.
  std::vector<DuplicateMark> Export() const;

  // Steps that a worker left before all their parts came: it died in between.
  int64_t unfinished_steps() const { return unfinished_steps_; }

 private:
  static constexpr int kRememberedSteps = 4;
  static constexpr int kRememberedIncarnations = 8;

  struct StepOutcome {
    int64_t step = 0;
    PartOutcome outcome;
  };

  struct Worker {
    uint64_t incarnation = 0;
    int64_t step = 0;  // newest; 0 before the first push
    int32_t parts = 0;
    std::bitset<kMaxParts> applied;
    // Rings; the newest outcome is the one of `step`.
    std::array<StepOutcome, kRememberedSteps> outcomes;
    std::array<uint64_t, kRememberedIncarnations> retired{};
    // How many there ever were, those that the ring has forgotten included.
    int64_t num_retired = 0;

    bool IsRetired(uint64_t incarnation) const;
    void CloseStep(int64_t* unfinished_steps) const;
    void Replace(uint64_t incarnation);
  };
  static_assert(sizeof(Worker) < 1024, "the promise above");

  static absl::Status CheckHello(const Sender& sender);
  const Worker* Find(const Sender& sender) const;

  const ListedTasks listed_;
  std::map<TaskKey, Worker> workers_;
  size_t unlisted_ = 0;
  int64_t unfinished_steps_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_DUPLICATE_MARKS_H_
