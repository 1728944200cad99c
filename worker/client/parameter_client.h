#ifndef WORKER_CLIENT_PARAMETER_CLIENT_H_
#define WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/codec/codec.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/gradual_pull.h"
#include "worker/client/gradual_push.h"
#include "worker/client/link/timer_queue.h"
#include "worker/client/parameters_in_place.h"
#include "worker/client/pull_state.h"
#include "worker/client/pulled_versions.h"
#include "worker/client/push_encoder.h"
#include "worker/client/push_outcome.h"
#include "worker/client/push_state.h"
#include "worker/client/tensor_view.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_plan.h"
#include "worker/client/transfer_window.h"

namespace muster {

// A run of values that the chief loads into one tensor or one of its slots.
// The unit of `offset` is that of TensorSlice: elements, or blocks for the
// slot "t".
struct LoadRange {
  int tensor = 0;
  int64_t offset = 0;
  TensorView values;
};

// The model that the chief defines on every shard.
struct ModelDefinition {
  uint64_t fingerprint = 0;
  OptimizerSpec optimizer;
  ReplicationSpec replication;
  bool allow_non_finite = false;
};

// One worker's view of the parameters on all ps tasks: pulls them into and
// pushes gradients from the caller's memory, in parts, over every shard at
// once, again after a lost message with the same identity. For the chief also
// loading and snapshots.
//
//   ParameterClient client(options, std::move(links));
//   RETURN_IF_ERROR(client.SetModel(tensors, placement));
//   client.SetEpoch(epoch, ps_incarnations);        // from Hello and Watch
//   RETURN_IF_ERROR(client.PullAndWait(values));
//   ... compute gradients ...
//   ASSIGN_OR_RETURN(PushOutcome outcome, client.PushAndWait(1, gradients));
//
// Thread-safe, but SetModel and SetEpoch are meant for between the steps: a
// transfer uses what was set when it started.
//
// Errors of every transfer: Aborted ("...fenced: ..."; the shard moved on: set
// the new epoch and pull), Unavailable after options.transfer.give_up_after,
// naming the ps task and the cause, and what a shard answers, with its name.
class ParameterClient {
 public:
  struct Options {
    Sender sender;
    // "/job:ps/task:0", ... for messages; one a link.
    std::vector<std::string> ps_names;
    TransferOptions transfer;
    // Of what is pushed; null: float32 as it is. Outlives the client.
    const Codec* codec = nullptr;
    // What the codec takes from one push is added to the next (PushEncoder).
    // Then one push is under way at a time.
    bool error_feedback = false;
    // Of the values that steps are computed from: those that BeginPull asks for
    // and that a push brings; null: float32 as they are. Outlives the client.
    const Codec* pull_codec = nullptr;
    // Of the tensors in one message; 0: what suits each link.
    int64_t max_part_bytes = 0;
    // Not owned; outlives the client.
    const Clock* clock = nullptr;
    // The same; null for a thread of the client's own.
    Timers* timers = nullptr;
    // A line for the operator, on any thread: which ps task a transfer waits
    // for. May be null.
    std::function<void(absl::string_view)> say;
  };

  // `links` by ps task. REQUIRES: as many links as names, at least one.
  ParameterClient(Options options,
                  std::vector<std::unique_ptr<ParameterLink>> links);
  // Ends every transfer with Cancelled; their callbacks have run when it
  // returns. REQUIRES: not called from a callback.
  ~ParameterClient();

  ParameterClient(const ParameterClient&) = delete;
  ParameterClient& operator=(const ParameterClient&) = delete;

  int num_shards() const { return static_cast<int>(links_.size()); }

  // One Hello, not repeated. `done` may run on any thread and must not block.
  void Hello(int ps_task, const HelloRequest& request,
             ReplyCallback<HelloReply> done);

  // The tensors, in creation order, and the ps task of each.
  // Errors: InvalidArgument.
  absl::Status SetModel(absl::Span<const TensorDef> tensors,
                        absl::Span<const int> placement);

  // The fences of what follows. `ps_incarnations` by ps task. Parameters of
  // another epoch are owed no residual. With new fences the model is cut into
  // parts anew, as suits the links then; with the same ones the parts keep
  // their numbers, whatever has become of the links.
  void SetEpoch(int64_t model_epoch,
                absl::Span<const uint64_t> ps_incarnations);

  // Reads every parameter, one view a tensor, as float32 whatever the codec.
  // The views' memory is the client's until `done`; received bytes are copied
  // once, into it. After an error its contents are a mixture. In synchronous
  // replication the `token` brings every shard to the update before its round
  // (a shard may be further); one without a round asks for what is there.
  void Pull(absl::Span<const MutableTensorView> into, const StepToken& token,
            std::function<void(absl::Status)> done);
  absl::Status PullAndWait(absl::Span<const MutableTensorView> into,
                           const StepToken& token = {});

  // A pull whose tensors are awaited one by one, with the codec. It ends before
  // the client does. Errors: InvalidArgument; those of the transfer when it is
  // awaited.
  absl::StatusOr<std::unique_ptr<GradualPull>> BeginPull(
      absl::Span<const MutableTensorView> into, const StepToken& token = {});

  // Parameters in place (asynchronous replication, pull: IN_PLACE): where the
  // shards keep them, for steps that read them there; from now until SetModel
  // or SetEpoch each push is of gradients that were computed so, and its
  // answers say what version the values then are. May block for seconds.
  // Errors: FailedPrecondition, Unimplemented, PermissionDenied and
  // InvalidArgument if some shard's cannot be read so; Aborted (fenced); others
  // may be transient.
  absl::StatusOr<ParametersInPlace> MapParameters();
  // `holder` has the parameters from now on (DeviceParameters), until the next
  // Define; it outlives the client. UpdateOnDevice takes the place of pushes
  // then. May wait for a device. Errors: FailedPrecondition with several
  // shards; those of ParameterLink::KeepOnDevice, Aborted for fenced.
  absl::Status KeepOnDevice(DeviceParameters* holder);
  // The holder's gradients, computed from the values of `versions`, are the
  // update of `step`: as a push that sends nothing. Waits for the shard, not
  // for a device. Errors: FailedPrecondition if `versions` is of another model
  // epoch; those of ParameterLink::UpdateOnDevice, Aborted for fenced.
  absl::StatusOr<PushOutcome> UpdateOnDevice(int64_t step,
                                             const PulledVersions& versions);
  // What version they are now: as Pull, but without values.
  absl::StatusOr<std::shared_ptr<const PulledVersions>> PullVersions();

  // Sends the gradients of `step` (a delta for a STATE tensor), computed from
  // the last successful pull. Nothing is copied (with a codec each part is
  // encoded once, when it leaves): gRPC reads the gradients where they lie, so
  // their memory must not change until `done`, which also waits for every
  // buffer of gRPC that refers to it. Applied exactly once, however often it is
  // sent. Steps of one incarnation count from 1 and only rise. `round` is that
  // of the step's token; 0 without one.
  // With `into`, one view a tensor, the answers bring the parameters as they
  // are after this update, with the codec of pulls: a pull without a round trip
  // of its own. Only where updates are made at once (not in synchronous
  // replication). The memory is the client's until `done`; after an error its
  // contents are a mixture.
  void Push(int64_t step, int64_t round, absl::Span<const TensorView> gradients,
            absl::Span<const MutableTensorView> into,
            std::function<void(absl::StatusOr<PushOutcome>)> done);
  absl::StatusOr<PushOutcome> PushAndWait(
      int64_t step, absl::Span<const TensorView> gradients, int64_t round = 0,
      absl::Span<const MutableTensorView> into = {});

  // A push whose gradients are still being computed: their memory is read when
  // they are released; so is `into` of a tensor its own memory until then. They
  // were computed from the values of `versions`; null: of those that came last.
  // The push ends before the client does. Errors: as Push.
  absl::StatusOr<std::unique_ptr<GradualPush>> BeginPush(
      int64_t step, int64_t round, absl::Span<const TensorView> gradients,
      absl::Span<const MutableTensorView> into = {},
      std::shared_ptr<const PulledVersions> versions = nullptr);

  // Synchronous replication: the token of a step tells whether the push before
  // it is in an update; with error feedback it is wanted before the next Push.
  void SettlePush(const StepToken& token);

  // ---- For the chief; each waits for all shards. -------------------------

  // Starts a load of the model at the epoch that was set. Returns the slots of
  // every trainable tensor. Errors: also Internal if shards disagree on them.
  absl::StatusOr<std::vector<std::string>> Define(
      const ModelDefinition& definition);
  // Sends values: of the tensors (slot "") or of one of their slots.
  absl::Status Load(absl::string_view slot, absl::Span<const LoadRange> ranges);
  // Everything was loaded. Returns the states by ps task.
  absl::StatusOr<std::vector<ShardState>> Seal();
  // Define, Load and Seal of a new model: one view a tensor, slots at their
  // start values.
  absl::Status LoadModel(const ModelDefinition& definition,
                         absl::Span<const TensorView> values);

  // Fixes every shard's values; with a token exactly after update
  // token.round - 1. Returns the replies by ps task. Errors: also Aborted if a
  // shard is past that.
  absl::StatusOr<std::vector<BeginSnapshotReply>> BeginSnapshot(
      const StepToken& token = {});
  // Reads `length` units from `offset` of a tensor (slot "") or slot into
  // `dst`, which has their bytes.
  absl::Status ReadSnapshot(absl::Span<const BeginSnapshotReply> snapshots,
                            int tensor, absl::string_view slot, int64_t offset,
                            int64_t length, char* dst);
  absl::Status EndSnapshot(absl::Span<const BeginSnapshotReply> snapshots);

 private:
  std::shared_ptr<const ClientModel> model() const;
  // Cuts tensors as options_ and the links want it. Errors: InvalidArgument.
  absl::StatusOr<TransferPlan> Plan(absl::Span<const TensorDef> tensors,
                                    absl::Span<const int> placement) const;

  // `from`, which is set still, is from now on a model whose parameters are
  // read elsewhere than where a pull writes. Errors: Aborted if it is not set.
  absl::Status SetInPlace(const std::shared_ptr<const ClientModel>& from);

  // Whether parts are sent at once or wait until they are opened.
  enum class PartsAre { kOpen, kClosed };

  // Runs a transfer of parts of these sizes by ps task; `done` on any thread.
  std::shared_ptr<Transfer> StartTransfer(
      const std::vector<std::vector<int64_t>>& part_bytes, PartsAre parts,
      Transfer::SendFunction send, Transfer::DoneFunction done);
  // The same, waiting for the end.
  absl::Status RunTransfer(const std::vector<std::vector<int64_t>>& part_bytes,
                           Transfer::SendFunction send);
  absl::StatusOr<std::shared_ptr<PullState>> MakePull(
      absl::Span<const MutableTensorView> into, const StepToken& token,
      const Codec* codec) const;
  std::shared_ptr<Transfer> StartPull(const std::shared_ptr<PullState>& state,
                                      std::function<void(absl::Status)> done);
  absl::StatusOr<std::shared_ptr<PushState>> MakePush(
      int64_t step, int64_t round, absl::Span<const TensorView> gradients,
      absl::Span<const MutableTensorView> into,
      std::shared_ptr<const PulledVersions> versions);
  // Values have come.
  void KeepVersions(std::shared_ptr<const PulledVersions> versions);
  std::shared_ptr<Transfer> StartPush(
      const std::shared_ptr<PushState>& state, PartsAre parts,
      std::function<void(absl::StatusOr<PushOutcome>)> done);
  // One message to each shard, call(ps_task, deadline, done), and the replies.
  // bytes[ps_task] is of the tensors that it brings, or makes a shard touch:
  // the time for it grows with them.
  template <typename Reply>
  absl::StatusOr<std::vector<Reply>> CallAll(
      const std::vector<int64_t>& bytes,
      const std::function<void(int, absl::Time, ReplyCallback<Reply>)>& call);
  std::vector<int64_t> NoTensors() const {
    return std::vector<int64_t>(num_shards(), 0);
  }
  bool HasNoTransfers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return transfers_.empty();
  }

  // Constant after construction.
  const Options options_;

  mutable absl::Mutex mu_;
  // Shared with the transfers that were started with it.
  std::shared_ptr<const ClientModel> model_ ABSL_GUARDED_BY(mu_);
  // Of the values that came last; null if none have in this epoch.
  std::shared_ptr<const PulledVersions> pulled_versions_ ABSL_GUARDED_BY(mu_);
  // Also the seed of the transfer's pauses.
  uint64_t next_transfer_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, std::shared_ptr<Transfer>> transfers_
      ABSL_GUARDED_BY(mu_);

  // Own synchronisation. Null without a codec.
  const std::unique_ptr<PushEncoder> encoder_;

  // Own synchronisation. Links go first at destruction: they wait for the
  // callbacks, which use the timers.
  const std::unique_ptr<TimerQueue> own_timers_;
  Timers* const timers_;
  std::vector<std::unique_ptr<ParameterLink>> links_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PARAMETER_CLIENT_H_
