#ifndef WORKER_TASK_NETWORK_CHECK_H_
#define WORKER_TASK_NETWORK_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"

namespace muster {

// What a task's flags say of the network.
struct NetworkChoice {
  // The address to listen on instead of the own one in the cluster; "" if not
  // given.
  std::string bind;
  // The task has keys, or the user said that the network is to be trusted.
  bool is_trusted = false;
};

// Checks that everything that a worker connects to or listens on is on this
// machine, or trusted; returns where it listens: the own address, or
// choice.bind; "" to serve nothing, where the cluster does not list the task.
// `reporter`: as CheckOthersCanCome's. Errors: those of CheckConnectAddress,
// CheckOthersCanCome and ChooseListenAddress.
absl::StatusOr<std::string> CheckNetwork(const ClusterSpec& cluster,
                                         const TaskId& self,
                                         const NetworkChoice& choice,
                                         const Reporter& reporter);

}  // namespace muster

#endif  // WORKER_TASK_NETWORK_CHECK_H_
