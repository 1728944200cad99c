#ifndef WORKER_STEP_MAKE_EXCHANGE_H_
#define WORKER_STEP_MAKE_EXCHANGE_H_

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "proto/training.pb.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/device_update.h"
#include "worker/step/step_exchange.h"
#include "worker/tower/tower_group.h"

namespace muster {

// The situation of a worker that decides how it exchanges steps.
struct ExchangeOptions {
  // All outlive the exchange.
  ParameterClient* client = nullptr;
  TowerGroup* towers = nullptr;
  // For StepTimes.
  const Clock* clock = SystemClock();
  // The only tower's, if its device keeps the parameters (WhyShardUpdates);
  // else null.
  DeviceUpdate* update = nullptr;

  // A mode, an AsyncReplication.pull, a pipeline_depth.
  ReplicationSpec replication;
  // Synchronous steps may read the parameters where the shards keep them, if
  // that can be done.
  bool reads_rounds_in_place = false;
  // A gradient is final when the towers have made it, and may leave then.
  bool may_push_early = true;
  // A hook may look at parameters in BeforePush: they stay until then (but for
  // those in place), though gradients leave early, and the next step begins
  // with a pull.
  bool hooks_read_parameters = false;
  // A gradient that is not finite may leave early, too.
  bool allow_non_finite = false;
  // Gets a line if parameters cannot be read in place.
  Reporter reporter;
};

// The exchange that suits these.
std::unique_ptr<StepExchange> MakeStepExchange(const ExchangeOptions& options);

}  // namespace muster

#endif  // WORKER_STEP_MAKE_EXCHANGE_H_
