#include "worker/client/pull.h"

#include <string>

#include "common/base/status_macros.h"
#include "worker/client/part_place.h"
#include "worker/client/transfer_plan.h"

namespace muster {

Pull::Pull(Options options)
    : options_(std::move(options)),
      versions_(std::make_shared<PulledVersions>()) {
  const TransferPlan& plan = options_.model->plan;
  versions_->model = options_.model;
  versions_->bytes = BytesOnTheWay(plan, PartsOf::kPull, options_.codec);
  versions_->others_bytes = BytesOnTheWay(plan, PartsOf::kPull, options_.codec,
                                          /*except=*/options_.model->own_shard);
  versions_->float32_bytes =
      BytesOnTheWay(plan, PartsOf::kPull, /*codec=*/nullptr);
  for (const std::vector<PlannedPart>& parts : plan.parts) {
    versions_->parts.emplace_back(parts.size(), 0);
  }
  for (const std::vector<PartId>& parts : plan.parts_of) {
    missing_.push_back(static_cast<int>(parts.size()));
  }
}

Pull::~Pull() {
  if (transfer_ == nullptr) return;
  // Nothing happens to one that has ended.
  transfer_->Cancel(absl::CancelledError("the pull was given up"));
  Finish().IgnoreError();
}

absl::Status Pull::Await(int tensor) {
  const auto is_ready = [this, tensor]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsReadyLocked(tensor);
  };
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_, absl::Condition(&is_ready),
                        absl::InfiniteDuration());
  return missing_[tensor] == 0 ? absl::OkStatus() : outcome_;
}

bool Pull::IsReady(int tensor) const {
  absl::MutexLock lock(&mu_);
  return IsReadyLocked(tensor);
}

absl::Status Pull::Finish() {
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_, absl::Condition(&ended_),
                        absl::InfiniteDuration());
  return outcome_;
}

absl::Time Pull::ended_at() const {
  absl::MutexLock lock(&mu_);
  return ended_at_;
}

void Pull::End(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  outcome_ = status;
  ended_at_ = options_.clock->Now();
  ended_ = true;
}

PullRequest Pull::MakeRequest(const TransferWindow::Send& send) const {
  const ClientModel& model = *options_.model;
  PullRequest request;
  model.FillHead(send.shard, &request);
  for (const PlannedSlice& slice :
       model.plan.parts[send.shard][send.part].slices) {
    model.FillSlice(slice, request.add_slices());
  }
  if (options_.token.round() != 0) *request.mutable_token() = options_.token;
  if (options_.codec != nullptr) {
    request.set_codec(std::string(options_.codec->name()));
  }
  request.set_in_place(options_.in_place);
  return request;
}

absl::Status Pull::Receive(const TransferWindow::Send& send,
                           const Frame<PullReply>& reply) {
  const PlannedPart& part = options_.model->plan.parts[send.shard][send.part];
  if (!options_.in_place && !reply.is_placed) {
    RETURN_IF_ERROR(
        ScatterValues(part, options_.codec, reply.data, options_.into));
  }
  versions_->parts[send.shard][send.part] = reply.header.version();
  absl::MutexLock lock(&mu_);
  for (const PlannedSlice& slice : part.slices) --missing_[slice.tensor];
  return absl::OkStatus();
}

void Pull::Send(ParameterLink* link, Transfer* transfer,
                const TransferWindow::Send& send) {
  const auto on_reply = [this, send, shared = transfer->shared_from_this()](
                            const absl::StatusOr<Frame<PullReply>>& reply) {
    // After the end the memory is the caller's again, and this gone.
    if (!shared->Hold()) return;
    shared->Answer(send, reply.ok() ? Receive(send, *reply) : reply.status());
    shared->Release();
  };
  if (options_.in_place) {
    return link->Pull(MakeRequest(send), send.deadline, on_reply);
  }
  const PlannedPart& part = options_.model->plan.parts[send.shard][send.part];
  const auto place = std::make_shared<PartPlace>(transfer, part, options_.codec,
                                                 options_.into);
  link->PullTo(
      place, MakeRequest(send), send.deadline,
      [place, on_reply](const absl::StatusOr<Frame<PullReply>>& reply) {
        place->Close();
        on_reply(reply);
      });
}

}  // namespace muster
