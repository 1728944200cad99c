#include "ps_server/service/coordination_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/namespace_name.h"
#include "common/rpc/error_reason.h"
#include "ps_server/caller/namespace_of.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/job_of_namespace.h"

namespace muster {
namespace {

// A watch or step that waits is answered so long before its caller's deadline
// that the answer arrives in time.
constexpr absl::Duration kAnswerTime = absl::Milliseconds(200);

// How long a call that asks for `wait_ms` may wait, in milliseconds.
int32_t WaitMs(int32_t wait_ms, absl::Duration until_deadline,
               absl::Duration longest) {
  const absl::Duration limit =
      std::clamp(until_deadline - kAnswerTime, absl::ZeroDuration(), longest);
  return static_cast<int32_t>(
      std::min<int64_t>(wait_ms, absl::ToInt64Milliseconds(limit)));
}

// The sender of a request; null if it has none.
template <typename Request>
auto SenderOfRequest(const Request& request, int /*first*/)
    -> decltype(&request.sender()) {
  return &request.sender();
}
template <typename Request>
const Sender* SenderOfRequest(const Request& /*request*/, char /*second*/) {
  return nullptr;
}

absl::Status ShuttingDown() {
  return absl::UnavailableError("the coordinator on /job:ps/task:0 is ending");
}

absl::Status TooLate() {
  return absl::DeadlineExceededError(
      "the deadline passed before the coordinator got to it");
}

}  // namespace

CoordinationServer::CoordinationServer(Options options)
    : options_(std::move(options)),
      jobs_(options_.max_namespaces, "", options_.coordinator),
      strand_(options_.clock, [this] { return Advance(); }) {
  ServeCalls();
}

CoordinationServer::~CoordinationServer() { Close(); }

bool CoordinationServer::Look(std::function<void(std::vector<JobLook>)> done) {
  return strand_.Post([this, done = std::move(done)] {
    const absl::Time now = options_.clock->Now();
    std::vector<JobLook> looks;
    jobs_.ForEach([&looks, now](const std::string& space, const Job& job) {
      looks.push_back({space, job.coordinator.StateForOperator(now),
                       job.coordinator.TotalsOfWorkers()});
    });
    done(std::move(looks));
  });
}

void CoordinationServer::Close() {
  // A refused post means that another Close was first.
  const bool first = strand_.Post([this] {
    jobs_.ForEach([](const std::string&, Job& job) {
      for (const auto& [watch_id, done] : job.watches) {
        job.coordinator.CutWatch(watch_id);
      }
      job.coordinator.CutSteps();
    });
  });
  strand_.Close();
  if (!first) return;
  // Came after the cut.
  jobs_.ForEach([](const std::string&, Job& job) {
    for (auto& [id, done] : std::exchange(job.watches, {})) {
      done(ShuttingDown());
    }
    for (auto& [id, done] : std::exchange(job.steps, {})) done(ShuttingDown());
  });
}

absl::Duration CoordinationServer::Advance() {
  const absl::Time now = options_.clock->Now();
  absl::Time due = absl::InfiniteFuture();
  std::vector<std::string> left;
  jobs_.ForEach([&](const std::string& space, Job& job) {
    due = std::min(due, Advance(job, now));
    if (!space.empty() && job.watches.empty() && job.steps.empty() &&
        job.coordinator.IsVoid()) {
      left.push_back(space);
    }
  });

  for (const std::string& space : left) jobs_.Erase(space);
  return due - now;
}

absl::Time CoordinationServer::Advance(Job& job, absl::Time now) {
  Coordinator& coordinator = job.coordinator;
  if (options_.last_request && job.space.empty()) {
    coordinator.HearOfOthers(options_.last_request());
  }
  coordinator.Tick(now);
  AnswerWatches(job, now);
  AnswerSteps(job, now);
  for (const std::string& line : coordinator.TakeLines()) SayOf(job, line);
  for (const std::string& line : coordinator.TakeWarnings()) {
    SayOf(job, line, Reporter::kWarning);
  }
  if (coordinator.phase() != job.told_phase) {
    job.told_phase = coordinator.phase();
    if (options_.on_phase_change) {
      options_.on_phase_change(job.space, coordinator.State());
    }
  }
  const bool is_over =
      coordinator.EndIsKnown() || !coordinator.abandoned().empty();
  if (job.space.empty() && !job.told_end && is_over) {
    job.told_end = true;
    if (options_.on_end) options_.on_end(coordinator.State());
  }
  SayWait(job, now);
  return std::min(coordinator.NextDeadline(), job.waiting.next_due());
}

void CoordinationServer::SayOf(const Job& job, absl::string_view line,
                               Reporter::Level level) const {
  options_.reporter.Report(
      level, job.space.empty()
                 ? std::string(line)
                 : absl::StrCat(QuotedNamespace(job.space), ": ", line));
}

void CoordinationServer::SayWait(Job& job, absl::Time now) {
  if (!options_.awaited) return;
  const Coordinator& coordinator = job.coordinator;
  // Steps do not raise the version; what matters then does.
  if ((coordinator.phase() == INITIAL && now >= job.awaited_due) ||
      coordinator.told_version() != job.awaited_version) {
    job.awaited_version = coordinator.told_version();
    job.awaited_due = now + StateVersions::kPause;
    job.awaited = options_.awaited(job.space, coordinator.State());
  }
  if (coordinator.phase() == DONE) job.awaited = coordinator.DescribeUntold();
  std::string line;
  if (!job.awaited.empty()) {
    line = job.waiting.WaitFor(job.awaited, now);
  } else if (job.waiting.Stop()) {
    line = "no longer waiting";
  }
  if (!line.empty()) SayOf(job, line);
}

void CoordinationServer::AnswerWatches(Job& job, absl::Time now) {
  for (WatchAnswer& answer : job.coordinator.TakeAnswers(now)) {
    auto watch = job.watches.extract(answer.watch_id);
    if (!watch.empty()) watch.mapped()(std::move(answer.state));
  }
}

absl::StatusOr<CoordinationServer::Job*> CoordinationServer::FindJob(
    const char* what, absl::string_view space, const Sender* sender,
    bool adds) {
  if (sender != nullptr) RETURN_IF_ERROR(ended_.Check(*sender));
  if (Job* const job = jobs_.Find(space)) return job;
  if (adds || !jobs_.serves_many()) {
    return jobs_.FindOrAdd(what, space, std::string(space),
                           OptionsOfJob(options_.coordinator, space));
  }
  return NoJobHere(what, space);
}

template <typename M, typename Answer>
void CoordinationServer::Serve(const M& row, const Answer& answer) {
  using Request = typename M::Request;
  calls_.Handle(row, [this, path = row.path, answer](
                         const Request& request, absl::Time deadline,
                         const ReplyCallback<typename M::Reply>& done) {
    const bool posted =
        strand_.Post([this, path, answer, request, deadline, done] {
          const absl::Time now = options_.clock->Now();
          if (now >= deadline) return done(TooLate());
          const absl::StatusOr<Job*> job =
              FindJob(path, NamespaceOf(request), SenderOfRequest(request, 0),
                      kBringsJob<Request>);
          if (!job.ok()) return done(job.status());
          answer(**job, request, deadline, now, done);
        });
    if (!posted) done(ShuttingDown());
  });
}

void CoordinationServer::ServeCalls() {
  Coordinator::VisitCalls([this](const auto& row, auto method) {
    this->Serve(row, [method](Job& job, const auto& request, absl::Time,
                              absl::Time now, const auto& done) {
      done((job.coordinator.*method)(request, now));
    });
  });
  Serve(kWatchCall,
        [this](Job& job, const WatchRequest& request, absl::Time deadline,
               absl::Time now, const auto& done) {
          StartWatch(job, request, deadline, now, done);
        });
  Serve(kStepCall,
        [this](Job& job, const StepRequest& request, absl::Time deadline,
               absl::Time now, const auto& done) {
          StartStep(job, request, deadline, now, done);
        });
  Serve(kGetJobStateCall,
        [](Job& job, const JobStateRequest&, absl::Time, absl::Time now,
           const auto& done) { done(job.coordinator.StateForOperator(now)); });
  // Not of a job's members.
  calls_.Handle(
      kEndJobCall, [this](const EndNamespaceRequest& request, absl::Time,
                          ReplyCallback<EndNamespaceReply> done) {
        const bool posted =
            strand_.Post([this, request, done] { done(EndJob(request)); });
        if (!posted) done(ShuttingDown());
      });
}

absl::StatusOr<EndNamespaceReply> CoordinationServer::EndJob(
    const EndNamespaceRequest& request) {
  const std::string& space = request.namespace_();
  if (!jobs_.serves_many()) {
    return CheckNewNamespace("end of a namespace", space, {}, /*max_named=*/0);
  }
  Job* const found = jobs_.Find(space);
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(QuotedNamespace(space), " has no job here"));
  }
  Job& job = *found;
  const std::vector<TaskKey> active = job.coordinator.ActiveTasks();
  if (!active.empty() && !request.force()) {
    return absl::FailedPreconditionError(absl::StrCat(
        QuotedNamespace(space), ": ", active.size(), " tasks train there, ",
        TaskName(active.front()), " first; --force ends them"));
  }
  const std::string why = DescribeEnd(request);
  for (const uint64_t incarnation : job.coordinator.Incarnations()) {
    ended_.Add(incarnation, why);
  }
  const absl::Status end = FencedError(why, ErrorReason::kReplaced);
  for (auto& [id, done] : std::exchange(job.watches, {})) done(end);
  for (auto& [id, done] : std::exchange(job.steps, {})) done(end);
  SayOf(job, why);
  if (request.drop() && !space.empty()) {
    jobs_.Erase(space);
  } else {
    jobs_.Put(space, std::string(space),
              OptionsOfJob(options_.coordinator, space));
  }
  return EndNamespaceReply();
}

void CoordinationServer::StartStep(Job& job, StepRequest request,
                                   absl::Time deadline, absl::Time now,
                                   ReplyCallback<StepReply> done) {
  request.set_max_wait_ms(WaitMs(request.max_wait_ms(), deadline - now,
                                 options_.coordinator.max_watch));
  const uint64_t step_id = next_call_++;
  const absl::Status status = job.coordinator.Step(request, step_id, now);
  if (!status.ok()) return done(status);
  job.steps.emplace(step_id, std::move(done));
  AnswerSteps(job, now);
}

void CoordinationServer::AnswerSteps(Job& job, absl::Time now) {
  for (StepAnswer& answer : job.coordinator.TakeStepAnswers(now)) {
    auto step = job.steps.extract(answer.step_id);
    if (!step.empty()) step.mapped()(std::move(answer.reply));
  }
}

void CoordinationServer::StartWatch(Job& job, WatchRequest request,
                                    absl::Time deadline, absl::Time now,
                                    ReplyCallback<JobState> done) {
  request.set_max_wait_ms(WaitMs(request.max_wait_ms(), deadline - now,
                                 options_.coordinator.max_watch));
  const uint64_t watch_id = next_call_++;
  const absl::Status status = job.coordinator.Watch(request, watch_id, now);
  if (!status.ok()) return done(status);
  job.watches.emplace(watch_id, std::move(done));
  // Who need not wait gets the state of his turn, not of what came after him.
  AnswerWatches(job, now);
}

}  // namespace muster
