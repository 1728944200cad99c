#ifndef PS_SERVER_SERVICE_COORDINATION_SERVER_H_
#define PS_SERVER_SERVICE_COORDINATION_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/wait_reporter.h"
#include "common/rpc/link.h"
#include "common/rpc/served_calls.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/ended_starts.h"
#include "ps_server/caller/namespace_table.h"
#include "ps_server/coordinator/coordinator.h"
#include "ps_server/service/job_look.h"
#include "ps_server/service/strand.h"

namespace muster {

// The Coordinators of a ps process, one a namespace, with the thread that owns
// them and lets their time pass. Behind the gRPC service on ps task 0, and
// called directly by a worker with --standalone.
//
// Thread-safe; callbacks run on its thread. A request whose deadline has
// passed before its turn is not carried out; a Watch or Step that waits is
// answered before its deadline. After Close every call answers Unavailable.
class CoordinationServer : public Link {
 public:
  struct Options {
    // The default namespace's. Named ones list no tasks: theirs are those that
    // come.
    CoordinatorOptions coordinator;
    // Named namespaces that may come.
    size_t max_namespaces = 0;
    // Outlives the server.
    const Clock* clock = nullptr;
    // Called on the server's thread when a job's phase has changed; must not
    // block.
    std::function<void(const std::string& space, const JobState&)>
        on_phase_change;
    // A line for the operator (Coordinator::TakeLines, and for whom the job
    // waits).
    Reporter reporter;
    // Asked there, each second at least while a job is INITIAL, then when its
    // state has changed: for whom the job waits; "" for nobody. Null: for
    // nobody.
    std::function<std::string(const std::string& space, const JobState&)>
        awaited;
    // The same, once, when the default namespace's job is done and every ps
    // task knows it, or nobody trains there (JobState.abandoned).
    std::function<void(const JobState&)> on_end;
    // When a shard was last called by somebody who trains, member or not. Null:
    // that is not known.
    std::function<absl::Time()> last_request;
  };

  explicit CoordinationServer(Options options);
  ~CoordinationServer() override;

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    calls_.CallBytes(method, std::move(request), deadline, std::move(done));
  }
  // All calls of CoordinationService, for this server's life.
  ServedCalls& calls() { return calls_; }

  // Gives what the jobs are at one moment to `done`, on the server's thread.
  // False once closed.
  bool Look(std::function<void(std::vector<JobLook>)> done);

  // Answers every waiting Watch and Step, then refuses everything. Repeatable.
  void Close();

 private:
  // One namespace's.
  struct Job {
    Job(std::string space_name, const CoordinatorOptions& coordinator_options)
        : space(std::move(space_name)), coordinator(coordinator_options) {}

    const std::string space;
    Coordinator coordinator;
    std::map<uint64_t, ReplyCallback<JobState>> watches;
    std::map<uint64_t, ReplyCallback<StepReply>> steps;
    JobPhase told_phase = INITIAL;
    bool told_end = false;
    // The words of options_.awaited for the state of this version.
    std::string awaited;
    int64_t awaited_version = 0;
    // While it is INITIAL, asked again from then on.
    absl::Time awaited_due = absl::InfinitePast();
    WaitReporter waiting;
  };

  // Has answer(job, request, deadline, now, done) serve a row's calls, on the
  // server's thread, unless it is too late.
  template <typename M, typename Answer>
  void Serve(const M& row, const Answer& answer);
  void ServeCalls();
  // The job that a request means; `adds`: it may be a new one. Errors:
  // FailedPrecondition (NOT_REGISTERED, or REPLACED for who was ended), those
  // of CheckNewNamespace.
  absl::StatusOr<Job*> FindJob(const char* what, absl::string_view space,
                               const Sender* sender, bool adds);
  absl::StatusOr<EndNamespaceReply> EndJob(const EndNamespaceRequest& request);
  void StartWatch(Job& job, WatchRequest request, absl::Time deadline,
                  absl::Time now, ReplyCallback<JobState> done);
  void StartStep(Job& job, StepRequest request, absl::Time deadline,
                 absl::Time now, ReplyCallback<StepReply> done);
  static void AnswerWatches(Job& job, absl::Time now);
  static void AnswerSteps(Job& job, absl::Time now);
  // Says, when it is due, for whom the job waits.
  void SayWait(Job& job, absl::Time now);
  // A line of the job's.
  void SayOf(const Job& job, absl::string_view line,
             Reporter::Level level = Reporter::kInfo) const;
  // Lets time pass, answers who waits, tells the phase; returns how long it may
  // be left alone.
  absl::Duration Advance();
  absl::Time Advance(Job& job, absl::Time now);

  const Options options_;
  // Constant after construction.
  ServedCalls calls_;
  // Used on the strand's thread only, until it is closed.
  NamespaceTable<Job> jobs_;
  EndedStarts ended_;
  uint64_t next_call_ = 1;
  // Last: its thread uses all of the above.
  Strand strand_;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_COORDINATION_SERVER_H_
