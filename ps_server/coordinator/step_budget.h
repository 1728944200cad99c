#ifndef PS_SERVER_COORDINATOR_STEP_BUDGET_H_
#define PS_SERVER_COORDINATOR_STEP_BUDGET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// How many steps may still be taken: the exact part of `stop` (the chief
// watches seconds and accuracy, and asks for the end). A grant
// reserves one step and the examples of that step, which are one batch, or in
// synchronous replication one batch of each replica that is aggregated; it ends
// as a report or is returned. So the counts never pass the limits:
//
//   steps + outstanding <= stop.steps
//   examples + outstanding * replicas * batch
//       <= floor(stop.epochs * epoch_examples)
//
// Not thread-safe.
class StepBudget {
 public:
  // Starts an epoch where the commit says, with no grants. A grant is for the
  // batches of `replicas` workers.
  // Errors: InvalidArgument for numbers that are no counts, no stop condition
  // at all, or stop.epochs without epoch_examples and batch_size.
  absl::Status Start(const CommitEpochRequest& commit, int64_t replicas = 1);

  // Takes the commit's stop conditions in the place of those of Start; the
  // counts stay. Errors: as Start's.
  absl::Status ChangeStop(const CommitEpochRequest& commit);

  // No limits and no grants (before a commit).
  void Clear();

  // Takes a grant if one is left.
  bool TryGrant();
  void Return();
  // Counts a step and its examples and ends its grant.
  void Report(int64_t examples);

  // The limit that is reached once no grant is outstanding: "steps",
  // "epochs", or "" while steps are left.
  std::string ReachedLimit() const;

  int64_t steps() const { return steps_; }
  int64_t examples() const { return examples_; }
  int64_t outstanding() const { return outstanding_; }
  // The rows of one worker's step.
  int64_t batch_size() const { return batch_size_; }

 private:
  bool StepLeft() const;
  bool BatchLeft() const;

  int64_t max_steps_ = 0;     // 0: no limit
  int64_t max_examples_ = 0;  // 0: no limit
  int64_t batch_size_ = 0;
  int64_t replicas_ = 1;  // workers whose batches a grant reserves
  int64_t steps_ = 0;
  int64_t examples_ = 0;
  int64_t outstanding_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEP_BUDGET_H_
