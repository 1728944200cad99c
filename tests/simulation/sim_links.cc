#include "tests/simulation/sim_links.h"

#include <utility>

#include "common/rpc/call_table.h"
#include "tests/simulation/sim_ps.h"
#include "tests/testing/copied_frame.h"

namespace muster {
namespace {

void SendBytes(SimCaller* caller, int ps, const AnyMethod& method,
               std::string request, absl::Time deadline,
               ReplyCallback<std::string> done) {
  caller->Call<std::string>(
      ps, std::move(request), deadline, std::move(done),
      [method, deadline](SimPs& process, const std::string& bytes,
                         ReplyCallback<std::string> reply) {
        process.calls().CallBytes(method, bytes, deadline, std::move(reply));
      });
}

// `done`, which tells the oracle first if the step was confirmed.
ReplyCallback<std::string> ConfirmStep(Oracle* oracle,
                                       const std::string& request,
                                       ReplyCallback<std::string> done) {
  StepRequest step;
  step.ParseFromString(request);
  return Link::ParseReply(
      kStepCall,
      [oracle, step, done = Link::SerializeReply<StepReply>(std::move(done))](
          const absl::StatusOr<StepReply>& reply) {
        if (reply.ok() && reply->model_epoch() == step.model_epoch()) {
          oracle->StepConfirmed(step);
        }
        done(reply);
      });
}

}  // namespace

SimParameterLink::~SimParameterLink() {
  caller_->CancelAll(absl::CancelledError("the connection is closed"));
}

template <typename Reply, typename Request>
void SimParameterLink::Send(Request request, absl::Time deadline,
                            ReplyCallback<Reply> done) {
  caller_->Call<Reply>(ps_, std::move(request), deadline, std::move(done),
                       [deadline](SimPs& process, const Request& asked,
                                  const ReplyCallback<Reply>& reply) {
                         process.shard().Ask(asked, deadline, reply);
                       });
}

void SimParameterLink::CallBytes(const AnyMethod& method, std::string request,
                                 absl::Time deadline,
                                 ReplyCallback<std::string> done) {
  if (bug_ == Bug::kCommitBeforeSeal && method == kSealCall) {
    done(SealReply().SerializeAsString());
    done = [](const absl::StatusOr<std::string>&) {};
  }
  SendBytes(caller_, ps_, method, std::move(request), deadline,
            std::move(done));
}

void SimParameterLink::Load(Frame<LoadPart> request, absl::Time deadline,
                            ReplyCallback<LoadReply> done) {
  Send(Copied(request), deadline, std::move(done));
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

void SimParameterLink::PullRows(Frame<PullRowsRequest> request,
                                absl::Time deadline,
                                ReplyCallback<Frame<PullRowsReply>> done) {
  Send(Copied(request), deadline, std::move(done));
}

void SimParameterLink::ReadSnapshot(const ReadSnapshotRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<Frame<SnapshotPart>> done) {
  Send(request, deadline, std::move(done));
}

// ---- Coordination -------------------------------------------------------

void SimCoordinationLink::CallBytes(const AnyMethod& method,
                                    std::string request, absl::Time deadline,
                                    ReplyCallback<std::string> done) {
  // Only the holder of the chief lease may send these.
  if (method == kBeginEpochCall || method == kCommitEpochCall) {
    network_->KeepCopy(space_, [network = network_, method, request] {
      if (network->ps(0) == nullptr) return;
      network->ps(0)->calls().CallBytes(
          method, request, absl::InfiniteFuture(),
          [](const absl::StatusOr<std::string>&) {});
    });
  }
  if (method == kStepCall)
    done = ConfirmStep(oracle_, request, std::move(done));
  SendBytes(caller_, 0, method, std::move(request), deadline, std::move(done));
}

}  // namespace muster
