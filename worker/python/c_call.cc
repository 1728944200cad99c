#include "worker/python/c_call.h"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/logging.h"
#include "common/process/environment.h"
#include "common/process/process_setup.h"
#include "common/process/thread_supply.h"
#include "grpc/support/log.h"
#include "spdlog/spdlog.h"
#include "worker/client/call_status.h"
#include "worker/python/muster.h"

namespace muster {
namespace {

// About as many as gRPC, the session, links and timers have.
constexpr int kMostThreads = 16;

// This process is the child of one in which a job has threads. Those are not
// here, and what they had locked stays so.
std::atomic<bool> is_forked{false};
thread_local std::string last_error;

void SetUpOnce() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    LockWithoutChecks();
    gpr_set_log_function([](gpr_log_func_args*) {});
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  });
}

// Others of the process may be using the logger before another one.
void KeepLogger() {
  static auto& kept = *new std::vector<std::shared_ptr<spdlog::logger>>;
  kept.push_back(spdlog::default_logger());
}

void SetUpLog(const TaskId* task) {
  static absl::Mutex mu(absl::kConstInit);
  static bool is_named = false;
  static bool is_set_up = false;
  absl::MutexLock lock(&mu);
  if (is_named || (is_set_up && task == nullptr)) return;
  LogOptions log;
  if (task != nullptr && task->index() >= 0) log.task_name = TaskName(*task);
  log.no_color = !Environment("NO_COLOR").empty();
  KeepLogger();
  SetUpLogging(log).IgnoreError();
  is_set_up = true;
  is_named = task != nullptr;
}

}  // namespace

int KindOf(const absl::Status& status) {
  if (status.ok()) return MUSTER_OK;
  if (is_forked) return MUSTER_ERROR_FORKED;
  if (absl::IsUnauthenticated(status)) return MUSTER_ERROR_SECURITY;
  if (IsOfFile(status)) {
    if (absl::IsResourceExhausted(status)) return MUSTER_ERROR_UNAVAILABLE;
    if (absl::IsDataLoss(status)) return MUSTER_ERROR_CHECKPOINT;
  }
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return MUSTER_ERROR_UNAVAILABLE;
  }
  return absl::IsInternal(status) ? MUSTER_ERROR_FAILED : MUSTER_ERROR_CONFIG;
}

absl::Status Guard(absl::FunctionRef<absl::Status()> call) {
  absl::Status status;
  if (is_forked) {
    status = absl::FailedPreconditionError(
        "this process was forked from one that takes part in a job, or reads "
        "one: its threads and connections are not here; start the job in the "
        "process "
        "that uses it, or make processes with spawn before it is started");
  } else {
    try {
      status = call();
    } catch (const std::exception& failure) {
      status = absl::InternalError(failure.what());
    }
  }
  last_error = std::string(status.message());
  return status;
}

const char* LastError() { return last_error.c_str(); }

absl::Status CheckGiven(const char* name, const void* argument) {
  if (argument != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status SetUpProcess(const TaskId* task) {
  SetUpOnce();
  SetUpLog(task);
  // Without its threads gRPC would abort, or wait for them for ever.
  return CheckThreads(kMostThreads);
}

}  // namespace muster
