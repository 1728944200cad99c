#ifndef WORKER_SESSION_DROPPED_STEP_H_
#define WORKER_SESSION_DROPPED_STEP_H_

#include "proto/coordination_service.pb.h"
#include "worker/session/session_messages.h"

namespace muster {

// Synchronous replication: was the gradient of the step that `report` is of
// dropped, because its round had closed before it was offered? `answer` is the
// first answer to the report.
//
// Known if a shard has said so, or from the answer's token. An answer that
// nothing was granted with tells nothing: false. Not for counting (JobState has
// the counts) but for telling the operator in time.
bool WasDropped(const StepReport& report, const StepReply& answer);

}  // namespace muster

#endif  // WORKER_SESSION_DROPPED_STEP_H_
