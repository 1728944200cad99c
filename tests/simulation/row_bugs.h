#ifndef TESTS_SIMULATION_ROW_BUGS_H_
#define TESTS_SIMULATION_ROW_BUGS_H_

#include <map>
#include <optional>
#include <vector>

#include "proto/coordination_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "ps_server/caller/task_name.h"
#include "tests/simulation/bug.h"

namespace muster {

// The planted bugs of rows, of one start of ps task 0: a worker is shown other
// rows than the coordinator has leased to it, which takes its report for one of
// these; or the coordinator hears that rows are passed over. Without a bug it
// changes nothing.
class RowBugs {
 public:
  explicit RowBugs(Bug bug) : bug_(bug) {}

  void Forge(StepRequest* request);
  void Forge(const Sender& asker, StepReply* reply);
  // kRowsLostOnTakeover: what the coordinator is to hear before another start
  // of the task registers.
  std::optional<StepRequest> LoseRowsOf(const RegisterRequest& request) const;

 private:
  // The newest grant of a task's.
  struct Given {
    RowLease rows;
    // In place of them.
    std::optional<RowLease> shown;
    // The request that it answers.
    StepRequest request;
  };

  // The rows to be shown in place of `given`; none: those.
  std::optional<RowLease> OtherRows(const TaskKey& task, const RowLease& given);

  const Bug bug_;
  std::map<TaskKey, Given> given_;
  // kRowsReturnedTwice: given up, or late.
  std::vector<RowLease> returned_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_ROW_BUGS_H_
