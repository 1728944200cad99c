#include "ps_server/shard/parameter_shard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/cluster_check.h"
#include "ps_server/shard/request_name.h"

namespace muster {

ParameterShard::ParameterShard(ShardOptions options)
    : options_(std::move(options)),
      incarnations_(ListedTasks(options_.cluster)),
      models_(options_, &replies_) {}

absl::Status ParameterShard::CheckSender(const Sender& sender,
                                         uint64_t ps_incarnation) const {
  if (ps_incarnation != options_.incarnation) {
    return FencedError(absl::StrCat(
        RequestName("request", sender, options_.ps_index),
        ": it means another start of this ps; say Hello and pull anew"));
  }
  return incarnations_.CheckCurrent(sender);
}

absl::StatusOr<ShardModel*> ParameterShard::FindModel(const Sender& sender) {
  return models_.Find(RequestName("request", sender, options_.ps_index),
                      sender.namespace_());
}

absl::StatusOr<ShardModel*> ParameterShard::Enter(const Sender& sender,
                                                  uint64_t ps_incarnation) {
  ASSIGN_OR_RETURN(ShardModel* const model, FindModel(sender));
  RETURN_IF_ERROR(CheckSender(sender, ps_incarnation));
  return model;
}

absl::StatusOr<ShardModel*> ParameterShard::EnterPush(const PushPart& header) {
  ASSIGN_OR_RETURN(ShardModel* const model, FindModel(header.sender()));
  const absl::Status checked =
      CheckSender(header.sender(), header.fence().ps_incarnation());
  if (checked.ok()) return model;
  model->CountRefusal(checked);
  return checked;
}

absl::StatusOr<HelloReply> ParameterShard::Hello(const HelloRequest& request) {
  RETURN_IF_ERROR(CheckHello(request, options_.cluster, options_.ps_index));
  const Sender& sender = request.sender();
  ASSIGN_OR_RETURN(ShardModel* const model, FindModel(sender));
  const uint64_t before = incarnations_.Current(sender);
  ASSIGN_OR_RETURN(const uint64_t takeover,
                   incarnations_.Admit(sender, request.takeover()));
  if (incarnations_.Current(sender) != before) models_.Forget(sender);
  HelloReply reply;
  reply.set_takeover(takeover);
  reply.set_protocol_version(kProtocolVersion);
  reply.set_ps_incarnation(options_.incarnation);
  reply.set_muster_version(std::string(kMusterVersion));
  *reply.mutable_state() = model->State();
  return reply;
}

absl::StatusOr<DefineReply> ParameterShard::Define(
    const DefineRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.ps_incarnation()));
  return model->Define(request);
}

absl::StatusOr<LoadReply> ParameterShard::Load(const Frame<LoadPart>& request) {
  const LoadPart& header = request.header;
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(header.sender(), header.fence().ps_incarnation()));
  return model->Load(request);
}

absl::StatusOr<SealReply> ParameterShard::Seal(const SealRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.fence().ps_incarnation()));
  return model->Seal(request);
}

absl::StatusOr<Frame<PullReply>> ParameterShard::Pull(
    const PullRequest& request, const ValueMemory& memory) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.fence().ps_incarnation()));
  return model->Pull(request, memory);
}

absl::StatusOr<Frame<PushReply>> ParameterShard::Push(
    const Frame<PushPart>& request, const PushContext& context) {
  ASSIGN_OR_RETURN(ShardModel* const model, EnterPush(request.header));
  return model->Push(request, context);
}

absl::StatusOr<BeginSnapshotReply> ParameterShard::BeginSnapshot(
    const BeginSnapshotRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.fence().ps_incarnation()));
  return model->BeginSnapshot(request);
}

absl::StatusOr<Frame<SnapshotPart>> ParameterShard::ReadSnapshot(
    const ReadSnapshotRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.fence().ps_incarnation()));
  return model->ReadSnapshot(request);
}

absl::StatusOr<EndSnapshotReply> ParameterShard::EndSnapshot(
    const EndSnapshotRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.fence().ps_incarnation()));
  return model->EndSnapshot(request);
}

absl::StatusOr<std::shared_ptr<const ParameterMemory>>
ParameterShard::ParametersInPlace(int64_t model_epoch) const {
  return models_.default_model().ParametersInPlace(model_epoch);
}

absl::Status ParameterShard::KeepOnDevice(const Sender& sender,
                                          const Fence& fence,
                                          DeviceParameters* holder) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(sender, fence.ps_incarnation()));
  return model->KeepOnDevice(sender, fence, holder);
}

absl::StatusOr<PushReply> ParameterShard::UpdateOnDevice(
    const PushPart& request) {
  ASSIGN_OR_RETURN(ShardModel* const model, EnterPush(request));
  return model->UpdateOnDevice(request);
}

absl::StatusOr<ShardState> ParameterShard::StateOf(
    const StateRequest& request) {
  ASSIGN_OR_RETURN(
      const ShardModel* const model,
      models_.Find(absl::StrCat("state of /job:ps/task:", options_.ps_index),
                   request.namespace_()));
  return model->State();
}

}  // namespace muster
