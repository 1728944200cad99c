#include "worker/task/assigned_index.h"

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/base/wait_reporter.h"
#include "common/cluster/task_id.h"
#include "common/rpc/backoff.h"
#include "common/rpc/call_table.h"
#include "common/rpc/credentials.h"
#include "common/rpc/deadline.h"
#include "common/rpc/protocol.h"
#include "common/rpc/server/listen_address.h"
#include "worker/client/link/blocking_call.h"
#include "worker/client/link/grpc_coordination_link.h"
#include "worker/session/peer_table.h"

namespace muster {
namespace {

absl::StatusOr<AssignTaskReply> Ask(const UnnumberedWorker& worker,
                                    Link* ps_0) {
  AssignTaskRequest request;
  request.set_protocol_version(kProtocolVersion);
  request.set_namespace_(worker.job_namespace);
  request.set_incarnation(worker.incarnation);
  return BlockingCall<AssignTaskReply>(*worker.clock, [&](auto done) {
    ps_0->Call(kAssignTaskCall, request, worker.clock->Now() + kControlTimeout,
               std::move(done));
  });
}

// `status`, of ps task 0, is none that another try would change.
absl::Status Refusal(const absl::Status& status, const std::string& ps) {
  // A ps of protocol 7 or before has no such call.
  const absl::string_view advice =
      absl::IsUnimplemented(status) ? kOtherProtocolAdvice : "";
  return absl::Status(
      status.code(),
      absl::StrCat(ps, " refused: ", WithoutPsName(status.message(), ps),
                   advice.empty() ? "" : "; ", advice));
}

// Returns whether the worker is stopped.
bool Pause(const UnnumberedWorker& worker, absl::Duration duration) {
  if (worker.latch != nullptr) {
    return worker.latch->WaitFor(duration).has_value();
  }
  absl::Mutex mu;
  const bool never = false;
  absl::MutexLock lock(&mu);
  worker.clock->Await(&mu, absl::Condition(&never), duration);
  return false;
}

}  // namespace

absl::StatusOr<AssignTaskReply> AcquireIndex(const UnnumberedWorker& worker,
                                             Link* ps_0) {
  const std::string ps = PsName(0, worker.ps_address);
  const absl::Time last = worker.clock->Now() + worker.max_wait;
  WaitReporter waiting;
  Backoff backoff(Backoff::Options(), worker.incarnation);
  while (true) {
    const absl::StatusOr<AssignTaskReply> reply = Ask(worker, ps_0);
    if (reply.ok()) {
      if (waiting.Stop()) worker.reporter.Info("no longer waiting");
      return *reply;
    }
    if (!IsTransient(reply.status())) return Refusal(reply.status(), ps);
    const std::string missing = absl::StrCat(
        ps, " (", WithoutPsName(reply.status().message(), ps), ")");
    const absl::Time now = worker.clock->Now();
    if (now >= last) {
      return absl::UnavailableError(absl::StrCat(
          "gave up after waiting ", absl::FormatDuration(worker.max_wait),
          " for ", missing, ", which numbers the workers (--max_wait)"));
    }
    const std::string line = waiting.WaitFor(missing, now);
    if (!line.empty()) worker.reporter.Info(line);
    if (Pause(worker, backoff.Next())) {
      return StoppedError(absl::StrCat("waiting for ", missing));
    }
  }
}

absl::StatusOr<AssignTaskReply> AcquireIndex(const UnnumberedWorker& worker) {
  RETURN_IF_ERROR(
      CheckConnectAddress(worker.ps_address, worker.is_network_trusted));
  GrpcCoordinationLink ps_0(
      {TaskName(MakeTaskId(kPsJob, 0)), worker.ps_address},
      InsecureCredentials().channel_to(kPsJob, 0));
  return AcquireIndex(worker, &ps_0);
}

}  // namespace muster
