#ifndef WORKER_DROPPED_STEP_H_
#define WORKER_DROPPED_STEP_H_

#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "worker/session_messages.h"

namespace muster {

// Synchronous replication: was the gradient of the step that `report` is of
// dropped, because its round had closed before it was offered? `answer` is the
// first answer to the report, of the task `self`.
//
// Known if a shard has said so, or from the steps that the answer names as
// those of the round. An answer that grants a later round, or that nothing was
// granted with, tells nothing: false. Not for counting (JobState has the
// counts) but for telling the operator in time.
bool WasDropped(const StepReport& report, const StepReply& answer,
                const TaskId& self);

}  // namespace muster

#endif  // WORKER_DROPPED_STEP_H_
