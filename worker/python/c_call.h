// What each call of muster.h is made of.
#ifndef WORKER_PYTHON_C_CALL_H_
#define WORKER_PYTHON_C_CALL_H_

#include <signal.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/cluster/task_id.h"

namespace muster {

// The kind of an error, MUSTER_OK or MUSTER_ERROR_..., that a call returns.
int KindOf(const absl::Status& status);

// Makes the call, and its error this thread's last one. An exception must not
// reach a caller in C: one is of memory or threads that there are none of.
absl::Status Guard(absl::FunctionRef<absl::Status()> call);

// This thread's last error; "" if the last call had none. Valid until the next
// call.
const char* LastError();

// Errors: InvalidArgument for NULL.
absl::Status CheckGiven(const char* name, const void* argument);

// All signals stay with the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();

  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Before a job or a reader starts threads. Signal handlers, limits and the
// heap's settings are the program's. Lines of the log have the name of the
// process's first task; those of a reader (null) before it have none. Errors:
// those of CheckThreads. REQUIRES: SignalsBlocked.
absl::Status SetUpProcess(const TaskId* task);

}  // namespace muster

#endif  // WORKER_PYTHON_C_CALL_H_
