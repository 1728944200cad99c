#include "ps_server/shard/parameter_shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/namespace_name.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/cluster_check.h"
#include "ps_server/shard/request_name.h"
#include "ps_server/shard/shard_definition.h"

namespace muster {

ParameterShard::ParameterShard(ShardOptions options)
    : options_(std::move(options)),
      spaces_(options_.max_namespaces, ListedTasks(options_.cluster), options_,
              &replies_) {}

absl::Status ParameterShard::CheckSender(const Sender& sender,
                                         uint64_t ps_incarnation,
                                         const Space& space) const {
  if (ps_incarnation != options_.incarnation) {
    return FencedError(absl::StrCat(
        RequestName("request", sender, options_.ps_index),
        ": it means another start of this ps; say Hello and pull anew"));
  }
  const absl::Status current = space.incarnations.CheckCurrent(sender);
  if (current.ok()) return current;
  RETURN_IF_ERROR(ended_.Check(sender));
  return current;
}

absl::StatusOr<ParameterShard::Space*> ParameterShard::FindSpace(
    absl::string_view what, absl::string_view name) {
  if (Space* const space = spaces_.Find(name)) return space;
  if (!spaces_.serves_many()) {
    return CheckNewNamespace(what, name, {}, /*max_named=*/0);
  }
  return FencedError(absl::StrCat(what, ": ", QuotedNamespace(name),
                                  " is not here; say Hello"));
}

absl::StatusOr<ParameterShard::Space*> ParameterShard::FindSenders(
    const Sender& sender) {
  absl::StatusOr<Space*> space = FindSpace(
      RequestName("request", sender, options_.ps_index), sender.namespace_());
  if (!space.ok()) RETURN_IF_ERROR(ended_.Check(sender));
  return space;
}

absl::StatusOr<ShardModel*> ParameterShard::Enter(const Sender& sender,
                                                  uint64_t ps_incarnation) {
  ASSIGN_OR_RETURN(Space* const space, FindSenders(sender));
  RETURN_IF_ERROR(CheckSender(sender, ps_incarnation, *space));
  return &space->model;
}

absl::StatusOr<ShardModel*> ParameterShard::EnterPush(const PushPart& header) {
  const Sender& sender = header.sender();
  ASSIGN_OR_RETURN(Space* const space, FindSenders(sender));
  const absl::Status checked =
      CheckSender(sender, header.fence().ps_incarnation(), *space);
  if (checked.ok()) return &space->model;
  space->model.CountRefusal(checked);
  return checked;
}

absl::StatusOr<HelloReply> ParameterShard::Hello(const HelloRequest& request) {
  RETURN_IF_ERROR(CheckHello(request, options_.cluster, options_.ps_index));
  const Sender& sender = request.sender();
  RETURN_IF_ERROR(ended_.Check(sender));
  ASSIGN_OR_RETURN(
      Space* const space,
      spaces_.FindOrAdd(RequestName("Hello", sender, options_.ps_index),
                        sender.namespace_(), ListedTasks(), options_,
                        &replies_));
  const uint64_t before = space->incarnations.Current(sender);
  ASSIGN_OR_RETURN(const uint64_t takeover,
                   space->incarnations.Admit(sender, request.takeover()));
  if (space->incarnations.Current(sender) != before) {
    space->model.Forget(sender);
  }
  HelloReply reply;
  reply.set_takeover(takeover);
  reply.set_protocol_version(kProtocolVersion);
  reply.set_ps_incarnation(options_.incarnation);
  reply.set_muster_version(std::string(kMusterVersion));
  *reply.mutable_state() = space->model.State();
  return reply;
}

uint64_t ParameterShard::CurrentIncarnation(const Sender& sender) {
  const Space* const space = spaces_.Find(sender.namespace_());
  return space == nullptr ? 0 : space->incarnations.Current(sender);
}

int64_t ParameterShard::BytesFor(const ShardModel& model) const {
  int64_t others = 0;
  ForEachModel([&](const std::string&, const ShardModel& other) {
    if (&other != &model) others += other.held_bytes();
  });
  return std::min(options_.max_bytes - others, options_.max_namespace_bytes);
}

void ParameterShard::Limit(ShardModel* model) const {
  if (model->has_tables()) model->LimitTo(BytesFor(*model));
}

std::string ParameterShard::DescribeHolders() const {
  std::string text;
  spaces_.ForEach([&](const std::string& name, const Space& space) {
    const int64_t bytes = space.model.held_bytes();
    if (bytes == 0) return;
    absl::StrAppend(&text, text.empty() ? "" : ", ", "'", name, "' ", bytes);
  });
  return text.empty() ? "nobody has any" : text;
}

absl::Status ParameterShard::CheckShare(const DefineRequest& request,
                                        const Space& space) const {
  const int64_t share = BytesFor(space.model);
  if (share >= options_.max_bytes ||
      CheckDefinition(request, options_, share).ok() ||
      !CheckDefinition(request, options_, options_.max_bytes).ok()) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      RequestName("define", request.sender(), options_.ps_index), ": ",
      QuotedNamespace(request.sender().namespace_()), " may have ", share,
      " bytes with its slots (--max_namespace_bytes ",
      options_.max_namespace_bytes, "; all namespaces together ",
      options_.max_bytes, ", of which hold: ", DescribeHolders(),
      "); musterctl namespace drop frees a namespace's"));
}

absl::StatusOr<DefineReply> ParameterShard::Define(
    const DefineRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.ps_incarnation()));
  const Space& space = *spaces_.Find(request.sender().namespace_());
  RETURN_IF_ERROR(CheckShare(request, space));
  return model->Define(request, BytesFor(*model));
}

absl::StatusOr<LoadReply> ParameterShard::Load(const Frame<LoadPart>& request) {
  const LoadPart& header = request.header;
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(header.sender(), header.fence().ps_incarnation()));
  Limit(model);
  return model->Load(request);
}

absl::StatusOr<SealReply> ParameterShard::Seal(const SealRequest& request) {
  ASSIGN_OR_RETURN(ShardModel* const model,
                   Enter(request.sender(), request.fence().ps_incarnation()));
  return model->Seal(request);
}

template <typename Request>
absl::StatusOr<ShardModel*> ParameterShard::EnterToRead(
    const Request& request) {
  const Sender& sender = request.sender();
  // Who says no Hello only reads what is there: nobody's start is replaced.
  const bool only_reads = request.has_from_namespace() &&
                          sender.incarnation() == 0 && !request.has_token();
  if (!only_reads) {
    ASSIGN_OR_RETURN(ShardModel* const model,
                     Enter(sender, request.fence().ps_incarnation()));
    if (!request.has_from_namespace()) return model;
  }
  ASSIGN_OR_RETURN(Space* const other,
                   FindSpace(RequestName("pull", sender, options_.ps_index),
                             request.from_namespace()));
  return &other->model;
}

absl::StatusOr<Frame<PullReply>> ParameterShard::Pull(
    const PullRequest& request, const ValueMemory& memory) {
  ASSIGN_OR_RETURN(ShardModel* const model, EnterToRead(request));
  return model->Pull(request, memory);
}

absl::StatusOr<Frame<PullRowsReply>> ParameterShard::PullRows(
    const Frame<PullRowsRequest>& request, const ValueMemory& memory) {
  ASSIGN_OR_RETURN(ShardModel* const model, EnterToRead(request.header));
  return model->PullRows(request, memory);
}

absl::StatusOr<Frame<PushReply>> ParameterShard::Push(
    const Frame<PushPart>& request, const PushContext& context) {
  ASSIGN_OR_RETURN(ShardModel* const model, EnterPush(request.header));
  Limit(model);
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
  return DefaultModel().ParametersInPlace(model_epoch);
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
      const Space* const space,
      FindSpace(absl::StrCat("state of /job:ps/task:", options_.ps_index),
                request.namespace_()));
  ShardState state = space->model.State();
  if (request.with_definitions()) space->model.AddDefinitions(&state);
  return state;
}

absl::StatusOr<ShardModel*> ParameterShard::FindModel(absl::string_view what,
                                                      absl::string_view space) {
  ASSIGN_OR_RETURN(Space* const found, FindSpace(what, space));
  return &found->model;
}

absl::StatusOr<ListNamespacesReply> ParameterShard::ListNamespaces(
    const ListNamespacesRequest& /*request*/) {
  ListNamespacesReply reply;
  reply.set_max_bytes(options_.max_bytes);
  reply.set_max_namespace_bytes(
      std::min(options_.max_bytes, options_.max_namespace_bytes));
  ForEachModel([&](const std::string& name, const ShardModel& model) {
    NamespaceState* const state = reply.add_namespaces();
    state->set_namespace_(name);
    *state->mutable_shard() = model.State();
  });
  return reply;
}

absl::StatusOr<EndNamespaceReply> ParameterShard::EndNamespace(
    const EndNamespaceRequest& request) {
  const std::string& name = request.namespace_();
  const std::string what =
      absl::StrCat("end of a namespace on /job:ps/task:", options_.ps_index);
  if (!spaces_.serves_many()) {
    return CheckNewNamespace(what, name, {}, /*max_named=*/0);
  }
  const Space* const space = spaces_.Find(name);
  if (space == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(what, ": ", QuotedNamespace(name), " is not here"));
  }
  EndNamespaceReply reply;
  reply.set_freed_bytes(space->model.held_bytes());
  for (const uint64_t incarnation : space->incarnations.AllCurrent()) {
    ended_.Add(incarnation, DescribeEnd(request));
  }
  if (request.drop() && !name.empty()) {
    spaces_.Erase(name);
  } else {
    spaces_.Put(name,
                ListedTasks(name.empty() ? options_.cluster : ClusterDef()),
                options_, &replies_);
  }
  return reply;
}

}  // namespace muster
