#include "worker/client/pull_state.h"

#include <string>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "worker/client/transfer_plan.h"

namespace muster {

PullState::PullState(Options options)
    : options_(std::move(options)),
      versions_(std::make_shared<PulledVersions>()) {
  versions_->model = options_.model;
  versions_->bytes = BytesOnTheWay(options_.model->plan, options_.codec);
  for (const std::vector<PlannedPart>& parts : options_.model->plan.parts) {
    versions_->parts.emplace_back(parts.size(), 0);
  }
}

PullRequest PullState::MakeRequest(const TransferWindow::Send& send) const {
  const ClientModel& model = *options_.model;
  PullRequest request;
  *request.mutable_sender() = model.sender;
  *request.mutable_fence() = model.fences[send.shard];
  for (const PlannedSlice& slice :
       model.plan.parts[send.shard][send.part].slices) {
    model.FillSlice(slice, request.add_slices());
  }
  if (options_.token.round() != 0) *request.mutable_token() = options_.token;
  if (options_.codec != nullptr) {
    request.set_codec(std::string(options_.codec->name()));
  }
  return request;
}

absl::Status PullState::Take(const TransferWindow::Send& send,
                             const Frame<PullReply>& reply) {
  const TransferPlan& plan = options_.model->plan;
  RETURN_IF_ERROR(ScatterValues(plan.parts[send.shard][send.part],
                                options_.codec, reply.data, options_.into));
  versions_->parts[send.shard][send.part] = reply.header.version();
  on_arrive_({send.shard, send.part});
  return absl::OkStatus();
}

void PullState::Send(ParameterLink* link, Transfer* transfer,
                     const TransferWindow::Send& send) {
  link->Pull(
      MakeRequest(send), send.deadline,
      [self = shared_from_this(), send, shared = transfer->shared_from_this()](
          const absl::StatusOr<Frame<PullReply>>& reply) {
        // After the end the memory is the caller's again.
        if (!shared->Hold()) return;
        shared->Answer(send,
                       reply.ok() ? self->Take(send, *reply) : reply.status());
        shared->Release();
      });
}

}  // namespace muster
