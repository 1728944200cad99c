#ifndef PS_SERVER_SHARD_PARAMETER_SHARD_H_
#define PS_SERVER_SHARD_PARAMETER_SHARD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/call_table.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "common/tensor/buffer_pool.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/block/parameter_memory.h"
#include "ps_server/caller/ended_starts.h"
#include "ps_server/caller/listed_tasks.h"
#include "ps_server/caller/namespace_table.h"
#include "ps_server/shard/incarnations.h"
#include "ps_server/shard/part_recorder.h"
#include "ps_server/shard/push_context.h"
#include "ps_server/shard/shard_model.h"
#include "ps_server/shard/shard_options.h"

namespace muster {

// One ps task's parameters and what may happen to them: the state machine
// behind ParameterService. No thread, clock, file or RPC inside; a request is
// checked whole before anything changes, so that a refused one changed
// nothing; but a Define for which the machine has no memory leaves the shard
// EMPTY. parameter_service.proto says what each request means and
// README.md the states. Not thread-safe (see ShardServer).
//
// A task is (namespace, job, index), and what it says is about its namespace's
// model alone: those share the process and its memory, nothing else.
//
// The values in an answer may lie in the shard: they are to be copied before
// the next request, unless memory was given for them.
//
// Errors of every request: FailedPrecondition with "fenced: " if the sender
// means a state or is an incarnation that is gone; InvalidArgument, NotFound,
// Unimplemented for what it says.
class ParameterShard {
 public:
  // visit(row, method) for each call of the call table that `method` of a
  // ParameterShard answers.
  template <typename Visit>
  static void VisitCalls(const Visit& visit) {
    visit(kHelloCall, &ParameterShard::Hello);
    visit(kDefineCall, &ParameterShard::Define);
    visit(kSealCall, &ParameterShard::Seal);
    visit(kBeginSnapshotCall, &ParameterShard::BeginSnapshot);
    visit(kEndSnapshotCall, &ParameterShard::EndSnapshot);
    visit(kStateCall, &ParameterShard::StateOf);
    visit(kListNamespacesCall, &ParameterShard::ListNamespaces);
    visit(kEndNamespaceCall, &ParameterShard::EndNamespace);
  }

  explicit ParameterShard(ShardOptions options);

  ParameterShard(const ParameterShard&) = delete;
  ParameterShard& operator=(const ParameterShard&) = delete;

  absl::StatusOr<HelloReply> Hello(const HelloRequest& request);
  absl::StatusOr<DefineReply> Define(const DefineRequest& request);
  absl::StatusOr<LoadReply> Load(const Frame<LoadPart>& request);
  absl::StatusOr<SealReply> Seal(const SealRequest& request);
  // `memory`, unless null, is where the values of the answer go, which may then
  // be kept.
  absl::StatusOr<Frame<PullReply>> Pull(const PullRequest& request,
                                        const ValueMemory& memory = nullptr);
  absl::StatusOr<Frame<PushReply>> Push(const Frame<PushPart>& request,
                                        const PushContext& context = {});
  // As Pull.
  absl::StatusOr<Frame<PullRowsReply>> PullRows(
      const Frame<PullRowsRequest>& request,
      const ValueMemory& memory = nullptr);
  absl::StatusOr<BeginSnapshotReply> BeginSnapshot(
      const BeginSnapshotRequest& request);
  absl::StatusOr<Frame<SnapshotPart>> ReadSnapshot(
      const ReadSnapshotRequest& request);
  absl::StatusOr<EndSnapshotReply> EndSnapshot(
      const EndSnapshotRequest& request);

  // The memory in which the default namespace's parameters of `model_epoch`
  // lie. Errors: FailedPrecondition ("fenced: " for another epoch) if they are
  // not to be read there.
  absl::StatusOr<std::shared_ptr<const ParameterMemory>> ParametersInPlace(
      int64_t model_epoch) const;

  // From now on, until the next Define, `holder` has the parameters and slots
  // and updates them (DeviceParameters); it outlives that. Again, and another
  // one: it takes over. Errors: FailedPrecondition if the replication is not
  // asynchronous, or there are state tensors; those of the holder, and then
  // nobody holds them.
  absl::Status KeepOnDevice(const Sender& sender, const Fence& fence,
                            DeviceParameters* holder);
  // An update of all of them (ParameterLink::UpdateOnDevice).
  absl::StatusOr<PushReply> UpdateOnDevice(const PushPart& request);

  // The state of the model that the request means. Errors: FailedPrecondition
  // ("fenced: ") if there is no such namespace, Unimplemented if there may be
  // none.
  absl::StatusOr<ShardState> StateOf(const StateRequest& request);
  absl::StatusOr<ListNamespacesReply> ListNamespaces(
      const ListNamespacesRequest& request);
  // Frees the namespace's memory; whoever has come there is fenced for good.
  // Errors: NotFound; Unimplemented on a ps that serves one job.
  absl::StatusOr<EndNamespaceReply> EndNamespace(
      const EndNamespaceRequest& request);

  // Calls visit(namespace, ShardModel) for each.
  template <typename Visit>
  void ForEachModel(const Visit& visit) const {
    spaces_.ForEach([&](const std::string& name, const Space& space) {
      visit(name, space.model);
    });
  }
  // The model of a namespace, for `what`. Errors: as StateOf.
  absl::StatusOr<ShardModel*> FindModel(absl::string_view what,
                                        absl::string_view space);
  // Who records what is done to it; null: nobody.
  PartRecorder* recorder(absl::string_view space) {
    Space* const found = spaces_.Find(space);
    return found == nullptr ? nullptr : found->model.recorder();
  }
  // Those of the default namespace's model.
  ShardState State() const { return DefaultModel().State(); }
  ShardPhase phase() const { return DefaultModel().phase(); }
  ShardCounters counters() const { return DefaultModel().counters(); }
  const std::string& optimizer_name() const {
    return DefaultModel().optimizer_name();
  }
  // As Incarnations'; 0 also for a namespace that is not there.
  uint64_t CurrentIncarnation(const Sender& sender);

 private:
  // What belongs to one namespace.
  struct Space {
    Space(ListedTasks listed, const ShardOptions& options, BufferPool* replies)
        : incarnations(std::move(listed)), model(options, replies) {}

    Incarnations incarnations;
    ShardModel model;
  };

  const ShardModel& DefaultModel() const {
    return spaces_.default_value().model;
  }
  // Errors: Unimplemented, FailedPrecondition ("fenced: ").
  absl::StatusOr<Space*> FindSpace(absl::string_view what,
                                   absl::string_view name);
  // FindSpace, unless the sender was ended.
  absl::StatusOr<Space*> FindSenders(const Sender& sender);
  absl::Status CheckSender(const Sender& sender, uint64_t ps_incarnation,
                           const Space& space) const;
  // The bytes that a namespace's model may have.
  int64_t BytesFor(const ShardModel& model) const;
  // Tells a model that may grow.
  void Limit(ShardModel* model) const;
  // OK, unless the model would fit, if only there were no other. Errors:
  // ResourceExhausted, which names those.
  absl::Status CheckShare(const DefineRequest& request,
                          const Space& space) const;
  std::string DescribeHolders() const;
  // The sender's model, if it means this process and may speak.
  absl::StatusOr<ShardModel*> Enter(const Sender& sender,
                                    uint64_t ps_incarnation);
  // The model that a request, Pull's or PullRows', is to read.
  template <typename Request>
  absl::StatusOr<ShardModel*> EnterToRead(const Request& request);
  // Enter, where a refusal counts.
  absl::StatusOr<ShardModel*> EnterPush(const PushPart& header);

  const ShardOptions options_;
  BufferPool replies_;
  NamespaceTable<Space> spaces_;
  EndedStarts ended_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PARAMETER_SHARD_H_
