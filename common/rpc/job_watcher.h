#ifndef COMMON_RPC_JOB_WATCHER_H_
#define COMMON_RPC_JOB_WATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/wait_reporter.h"
#include "common/process/stop_latch.h"
#include "common/rpc/credentials.h"
#include "common/rpc/peer_channel.h"
#include "common/rpc/peer_check.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "proto/coordination_service.grpc.pb.h"

namespace muster {

// Watches the job on ps task 0 for a task that is no member of it (another ps
// task, the evaluator), on a thread of its own: when the job is DONE (or ps
// task 0 has gone and has_ended says so), or when ps task 0 was not reached for
// max_wait, it stops the latch (exit code 0, or 138, also of a job that ended
// without its last save, or that nobody trains). It says for whom the task
// waits: for ps task 0, or for whom `awaited` names. It tells ps task 0 that it
// knows the end, which is waiting to hear that from the other ps tasks before
// it leaves.
class JobWatcher {
 public:
  struct Options {
    // ps task 0, "host:port".
    std::string address;
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        InsecureCredentials().channel_to("ps", 0);
    // Own name in the Watch.
    Sender sender;
    absl::Duration max_wait = absl::Hours(2);
    // Keep going when the job is DONE.
    bool keep_serving = false;
    // Asked on the watcher's thread when ps task 0 was not reached for a few
    // seconds: is there other proof that the job has ended? Its end may have
    // come between two Watches. Null: none.
    std::function<bool()> has_ended;
    // The tasks of the job that this one waits for, in words; "" for none.
    // Asked there, too. Null: none.
    std::function<std::string(const JobState&)> awaited;
    // A line for the operator, on the watcher's thread.
    Reporter reporter;
    // Outlive the watcher.
    const Clock* clock = nullptr;
    StopLatch* latch = nullptr;
  };

  explicit JobWatcher(Options options);
  // Cancels the call in flight and ends the thread.
  ~JobWatcher();

  JobWatcher(const JobWatcher&) = delete;
  JobWatcher& operator=(const JobWatcher&) = delete;

 private:
  void Run();
  // Errors: Cancelled if the watcher is being destroyed.
  grpc::Status Watch(absl::Duration wait, absl::Duration timeout,
                     JobState* state);
  // One Watch call. Returns whether the thread goes on.
  bool WatchOnce();
  bool OnState(const JobState& state);
  // Watches from the end on, which is how ps task 0 learns that we know it.
  void ConfirmEnd();
  bool OnFailure(const grpc::Status& status);
  // Says, when it is due, that this task waits; "" for no longer.
  void SayWait(const std::string& what);
  // Waits; false if the watcher is being destroyed.
  bool Pause(absl::Duration duration);

  const Options options_;

  // Own synchronisation.
  PeerChannel channel_;

  // The thread's own.
  PeerCheck check_;
  int64_t state_version_ = 0;
  absl::Time last_heard_;
  WaitReporter waiting_;

  absl::Mutex mu_;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  // The call in flight, or null.
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mu_) = nullptr;

  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_RPC_JOB_WATCHER_H_
