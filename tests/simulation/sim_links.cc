#include "tests/simulation/sim_links.h"

#include "tests/simulation/sim_ps.h"
#include "tests/testing/copied_frame.h"

namespace muster {
namespace {

template <typename Reply>
const auto kServe =
    [](SimPs& ps, const auto& request, const ReplyCallback<Reply>& reply) {
      reply(ps.Handle(request));
    };

}  // namespace

SimParameterLink::~SimParameterLink() {
  caller_->CancelAll(absl::CancelledError("the connection is closed"));
}

template <typename Reply, typename Request>
void SimParameterLink::Send(Request request, absl::Time deadline,
                            ReplyCallback<Reply> done) {
  caller_->Call<Reply>(ps_, std::move(request), deadline, std::move(done),
                       kServe<Reply>);
}

void SimParameterLink::Hello(const HelloRequest& request, absl::Time deadline,
                             ReplyCallback<HelloReply> done) {
  Send(request, deadline, std::move(done));
}

void SimParameterLink::Define(const DefineRequest& request, absl::Time deadline,
                              ReplyCallback<DefineReply> done) {
  Send(request, deadline, std::move(done));
}

void SimParameterLink::Load(Frame<LoadPart> request, absl::Time deadline,
                            ReplyCallback<LoadReply> done) {
  Send(Copied(request), deadline, std::move(done));
}

void SimParameterLink::Seal(const SealRequest& request, absl::Time deadline,
                            ReplyCallback<SealReply> done) {
  if (bug_ == Bug::kCommitBeforeSeal) done(SealReply());
  Send<SealReply>(
      request, deadline,
      [this, done = std::move(done)](const absl::StatusOr<SealReply>& reply) {
        if (bug_ != Bug::kCommitBeforeSeal) done(reply);
      });
}

void SimParameterLink::Pull(const PullRequest& request, absl::Time deadline,
                            ReplyCallback<Frame<PullReply>> done) {
  Send(request, deadline, std::move(done));
}

void SimParameterLink::Push(Frame<PushPart> request, absl::Time deadline,
                            ReplyCallback<Frame<PushReply>> done) {
  Frame<PushPart> sent = Copied(request);
  request.data.Clear();
  const PushPart header = request.header;
  oracle_->PushSent(ps_, header);
  ForgeIdentity(&sent.header);
  Send<Frame<PushReply>>(
      std::move(sent), deadline,
      [this, header,
       done = std::move(done)](absl::StatusOr<Frame<PushReply>> reply) {
        if (bug_ == Bug::kLostReplyIsSuccess &&
            absl::IsUnavailable(reply.status())) {
          reply = Frame<PushReply>();
        }
        if (reply.ok()) oracle_->PushAcknowledged(ps_, header, reply->header);
        done(std::move(reply));
      });
}

void SimParameterLink::ForgeIdentity(PushPart* header) {
  if (bug_ != Bug::kNewIdentityOnRetry) return;
  constexpr int64_t kMoreThanSends = 100;
  const int sends = sends_[{header->step(), header->part()}]++;
  header->set_step(header->step() * kMoreThanSends + sends);
}

void SimParameterLink::BeginSnapshot(const BeginSnapshotRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<BeginSnapshotReply> done) {
  Send(request, deadline, std::move(done));
}

void SimParameterLink::ReadSnapshot(const ReadSnapshotRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<Frame<SnapshotPart>> done) {
  Send(request, deadline, std::move(done));
}

void SimParameterLink::EndSnapshot(const EndSnapshotRequest& request,
                                   absl::Time deadline,
                                   ReplyCallback<EndSnapshotReply> done) {
  Send(request, deadline, std::move(done));
}

// ---- Coordination -------------------------------------------------------

template <typename Reply, typename Request>
void SimCoordinationLink::Send(const Request& request, absl::Time deadline,
                               ReplyCallback<Reply> done) {
  caller_->Call<Reply>(0, request, deadline, std::move(done), kServe<Reply>);
}

template <typename Reply, typename Request>
void SimCoordinationLink::SendAsChief(const Request& request,
                                      absl::Time deadline,
                                      ReplyCallback<Reply> done) {
  network_->KeepCopy([network = network_, request] {
    if (network->ps(0) != nullptr) (void)network->ps(0)->Handle(request);
  });
  Send(request, deadline, std::move(done));
}

void SimCoordinationLink::Register(const RegisterRequest& request,
                                   absl::Time deadline,
                                   ReplyCallback<RegisterReply> done) {
  Send(request, deadline, std::move(done));
}

void SimCoordinationLink::Watch(const WatchRequest& request,
                                absl::Time deadline,
                                ReplyCallback<JobState> done) {
  caller_->Call<JobState>(
      0, request, deadline, std::move(done),
      [](SimPs& ps, const WatchRequest& watch, ReplyCallback<JobState> reply) {
        ps.Watch(watch, std::move(reply));
      });
}

void SimCoordinationLink::BeginEpoch(const BeginEpochRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<BeginEpochReply> done) {
  SendAsChief(request, deadline, std::move(done));
}

void SimCoordinationLink::CommitEpoch(const CommitEpochRequest& request,
                                      absl::Time deadline,
                                      ReplyCallback<CommitEpochReply> done) {
  SendAsChief(request, deadline, std::move(done));
}

void SimCoordinationLink::Step(const StepRequest& request, absl::Time deadline,
                               ReplyCallback<StepReply> done) {
  caller_->Call<StepReply>(
      0, request, deadline,
      [this, request,
       done = std::move(done)](const absl::StatusOr<StepReply>& reply) {
        if (reply.ok() && reply->model_epoch() == request.model_epoch()) {
          oracle_->StepConfirmed(request);
        }
        done(reply);
      },
      [](SimPs& ps, const StepRequest& step, ReplyCallback<StepReply> reply) {
        ps.Step(step, std::move(reply));
      });
}

void SimCoordinationLink::Finish(const FinishRequest& request,
                                 absl::Time deadline,
                                 ReplyCallback<FinishReply> done) {
  Send(request, deadline, std::move(done));
}

void SimCoordinationLink::ReportSave(const ReportSaveRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<ReportSaveReply> done) {
  Send(request, deadline, std::move(done));
}

void SimCoordinationLink::PauseRounds(const PauseRoundsRequest& request,
                                      absl::Time deadline,
                                      ReplyCallback<PauseRoundsReply> done) {
  Send(request, deadline, std::move(done));
}

}  // namespace muster
