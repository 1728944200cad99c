#ifndef PS_SERVER_COORDINATOR_STEP_BUDGET_H_
#define PS_SERVER_COORDINATOR_STEP_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/max_count.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// How many steps may still be taken: the exact part of `stop` (the chief
// watches seconds and accuracy, and asks for the end; RowLeases has the rows of
// stop.epochs). A grant reserves one step; it ends as a report or is returned.
// So the count never passes the limit:
//
//   steps + outstanding <= stop.steps
//
// Not thread-safe.
class StepBudget {
 public:
  // Starts an epoch where the commit says, with no grants.
  // Errors: InvalidArgument for numbers that are no counts, no stop condition
  // at all, or stop.epochs without epoch_examples and batch_size.
  absl::Status Start(const CommitEpochRequest& commit);

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

  bool IsStepLeft() const { return grants_left() > 0; }
  // No step is left, and none granted.
  bool IsUsedUp() const { return outstanding_ == 0 && !IsStepLeft(); }
  // Those that may still be taken; kMaxCount without stop.steps.
  int64_t grants_left() const;
  // The rows of stop.epochs; kMaxCount if there is no such limit.
  int64_t row_limit() const { return row_limit_; }

  int64_t steps() const { return steps_; }
  int64_t examples() const { return examples_; }
  int64_t outstanding() const { return outstanding_; }

 private:
  int64_t max_steps_ = 0;  // 0: no limit
  int64_t row_limit_ = kMaxCount;
  int64_t steps_ = 0;
  int64_t examples_ = 0;
  int64_t outstanding_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEP_BUDGET_H_
