#ifndef PS_SERVER_SERVICE_JOB_LOOK_H_
#define PS_SERVER_SERVICE_JOB_LOOK_H_

#include <string>
#include <vector>

#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/coordinator_worker.h"

namespace muster {

// A namespace's job, as its metrics tell it.
struct JobLook {
  std::string space;
  // As an operator is told it.
  JobState state;
  // Of the state's workers, in their order.
  std::vector<CoordinatorWorker::Totals> totals;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_JOB_LOOK_H_
