#include "ps_server/service/save_asker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/config/namespace_name.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/client_context.h"
#include "spdlog/spdlog.h"

namespace muster {
namespace {

// A Watch is answered by ps task 0 before its deadline.
constexpr absl::Duration kAnswerTime = absl::Milliseconds(500);
// A ps goes on so long after it has seen that it is being saved, in all so
// long: with the drain less than the 30 s that Kubernetes, Slurm and systemd
// give.
constexpr absl::Duration kSavingPatience = absl::Seconds(2);
constexpr absl::Duration kLongestSave = absl::Seconds(22);

}  // namespace

SaveAsker::SaveAsker(const std::shared_ptr<grpc::Channel>& ps_0,
                     const Sender& self, const Clock* clock)
    : stub_(CoordinationService::NewStub(ps_0)), self_(self), clock_(clock) {}

std::string SaveAsker::WhoseJob() const {
  return self_.namespace_().empty()
             ? ""
             : absl::StrCat(QuotedNamespace(self_.namespace_()), ": ");
}

void SaveAsker::Begin(absl::Duration patience) {
  start_ = clock_->Now();
  wait_.emplace(start_ + patience);
  verdict_ = Ask(&*wait_);
}

void SaveAsker::Await(absl::FunctionRef<bool()> is_saving) {
  while (verdict_ == SaveWait::Verdict::kWait) {
    // Rounded up: it would ask again and again in the last millisecond.
    const absl::StatusOr<JobState> state =
        WatchOnce(wait_->give_up() - clock_->Now() + absl::Milliseconds(1));
    if (is_saving()) {
      wait_->Extend(
          std::min(start_ + kLongestSave, clock_->Now() + kSavingPatience));
    }
    verdict_ = state.ok() ? wait_->OnState(*state, clock_->Now())
                          : wait_->OnFailure(state.status());
  }
}

void SaveAsker::Confirm() {
  if (verdict_ != SaveWait::Verdict::kSaved) return;
  const absl::StatusOr<JobState> state = WatchOnce(absl::ZeroDuration());
  verdict_ = state.ok() ? wait_->Confirm(*state, clock_->Now())
                        : wait_->OnFailure(state.status());
}

SaveWait::Verdict SaveAsker::Say() const {
  const std::string took = absl::FormatDuration(
      absl::Trunc(clock_->Now() - start_, absl::Milliseconds(1)));
  switch (verdict_) {
    case SaveWait::Verdict::kSaved:
      spdlog::info("{}the chief has saved the model (asked {} ago)", WhoseJob(),
                   took);
      break;
    case SaveWait::Verdict::kJobDone:
      spdlog::info("{}the job is done", WhoseJob());
      break;
    default:
      spdlog::warn("{}ending without a new checkpoint: {}", WhoseJob(),
                   wait_->reason());
  }
  return verdict_;
}

SaveWait::Verdict SaveAsker::Ask(SaveWait* wait) {
  RequestSaveRequest request;
  *request.mutable_sender() = self_;
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(wait->give_up()));
  RequestSaveReply reply;
  const grpc::Status status = stub_->RequestSave(&context, request, &reply);
  if (!status.ok()) return wait->OnFailure(ToAbslStatus(status));
  state_version_ = reply.state().state_version();
  return wait->OnReply(reply, clock_->Now());
}

absl::StatusOr<JobState> SaveAsker::WatchOnce(absl::Duration longest) {
  WatchRequest request;
  *request.mutable_sender() = self_;
  request.set_state_version(state_version_);
  request.set_max_wait_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(longest)));
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(clock_->Now() + longest + kAnswerTime));
  JobState state;
  const grpc::Status status = stub_->Watch(&context, request, &state);
  if (!status.ok()) return ToAbslStatus(status);
  state_version_ = state.state_version();
  return state;
}

void SaveAsker::Leave(absl::Duration patience) {
  RequestSaveRequest request;
  *request.mutable_sender() = self_;
  request.set_leaving(true);
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(clock_->Now() + patience));
  RequestSaveReply reply;
  const grpc::Status status = stub_->RequestSave(&context, request, &reply);
  if (!status.ok()) {
    spdlog::debug("leaving was not told: {}", status.error_message());
  }
}

}  // namespace muster
