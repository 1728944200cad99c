#include "ps_server/coordination_server.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace muster {
namespace {

// A watch is answered so long before its caller's deadline that the answer
// arrives in time.
constexpr absl::Duration kAnswerTime = absl::Milliseconds(200);

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
      coordinator_(options_.coordinator),
      mailbox_([this] { return Advance(); }) {}

CoordinationServer::~CoordinationServer() { Close(); }

void CoordinationServer::Close() {
  // A refused post means that another Close was first.
  const bool first = mailbox_.Post([this] {
    for (const auto& [watch_id, done] : watches_) {
      coordinator_.CutWatch(watch_id);
    }
  });
  mailbox_.Close();
  if (!first) return;
  for (auto& [watch_id, done] : std::exchange(watches_, {})) {
    done(ShuttingDown());  // came after the cut
  }
}

absl::Duration CoordinationServer::Advance() {
  const absl::Time now = options_.clock->Now();
  coordinator_.Tick(now);
  for (WatchAnswer& answer : coordinator_.TakeAnswers(now)) {
    auto watch = watches_.extract(answer.watch_id);
    if (!watch.empty()) watch.mapped()(std::move(answer.state));
  }
  if (coordinator_.phase() != told_phase_) {
    told_phase_ = coordinator_.phase();
    if (options_.on_phase_change) {
      options_.on_phase_change(coordinator_.State());
    }
  }
  return coordinator_.NextDeadline() - now;
}

template <typename Reply, typename Request>
void CoordinationServer::Submit(
    const Request& request, absl::Time deadline, ReplyCallback<Reply> done,
    absl::StatusOr<Reply> (Coordinator::*method)(const Request&, absl::Time)) {
  const bool posted = mailbox_.Post([this, request, deadline, done, method] {
    const absl::Time now = options_.clock->Now();
    if (now >= deadline) return done(TooLate());
    done((coordinator_.*method)(request, now));
  });
  if (!posted) done(ShuttingDown());
}

void CoordinationServer::Register(const RegisterRequest& request,
                                  absl::Time deadline,
                                  ReplyCallback<RegisterReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::Register);
}

void CoordinationServer::BeginEpoch(const BeginEpochRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<BeginEpochReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::BeginEpoch);
}

void CoordinationServer::CommitEpoch(const CommitEpochRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<CommitEpochReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::CommitEpoch);
}

void CoordinationServer::Step(const StepRequest& request, absl::Time deadline,
                              ReplyCallback<StepReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::Step);
}

void CoordinationServer::Finish(const FinishRequest& request,
                                absl::Time deadline,
                                ReplyCallback<FinishReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::Finish);
}

void CoordinationServer::ReportSave(const ReportSaveRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<ReportSaveReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::ReportSave);
}

void CoordinationServer::RequestSave(const RequestSaveRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<RequestSaveReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::RequestSave);
}

void CoordinationServer::Watch(const WatchRequest& request, absl::Time deadline,
                               ReplyCallback<JobState> done) {
  const bool posted = mailbox_.Post(
      [this, request, deadline, done] { StartWatch(request, deadline, done); });
  if (!posted) done(ShuttingDown());
}

void CoordinationServer::StartWatch(WatchRequest request, absl::Time deadline,
                                    ReplyCallback<JobState> done) {
  const absl::Time now = options_.clock->Now();
  if (now >= deadline) return done(TooLate());
  const absl::Duration longest =
      std::clamp(deadline - now - kAnswerTime, absl::ZeroDuration(),
                 options_.coordinator.max_watch);
  request.set_max_wait_ms(static_cast<int32_t>(std::min<int64_t>(
      request.max_wait_ms(), absl::ToInt64Milliseconds(longest))));
  const uint64_t watch_id = next_watch_++;
  const absl::Status status = coordinator_.Watch(request, watch_id, now);
  if (!status.ok()) return done(status);
  watches_.emplace(watch_id, std::move(done));
}

void CoordinationServer::GetJobState(absl::Time deadline,
                                     ReplyCallback<JobState> done) {
  const bool posted = mailbox_.Post([this, deadline, done] {
    if (options_.clock->Now() >= deadline) return done(TooLate());
    done(coordinator_.State());
  });
  if (!posted) done(ShuttingDown());
}

}  // namespace muster
