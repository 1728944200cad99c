#ifndef WORKER_CLIENT_PARAMETER_CLIENT_H_
#define WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "worker/client/chief_client.h"
#include "worker/client/client_model.h"
#include "worker/client/namespace_reader.h"
#include "worker/client/pull.h"
#include "worker/client/push.h"
#include "worker/client/push_encoder.h"
#include "worker/client/pushed_rows.h"
#include "worker/client/row_pull.h"
#include "worker/client/shard_group.h"
#include "worker/client/table_rows.h"

namespace muster {

// When a step may read parameters where a shard keeps them, and changes them.
enum class InPlaceOrder {
  // At any time. Each push is of gradients that were computed so, and its
  // answers say what version the values then are.
  kNone,
  // Synchronous replication: between the end of BeginPullInPlace with the
  // step's token and its push. The update of a round comes after the gradients
  // of which it is the mean, so that none of these ever saw it; who still reads
  // then is late, and its gradient is dropped.
  kByRound,
};

// Every parameter where its shard keeps it, and changes it while it is read.
struct ParametersInPlace {
  // One a tensor, aligned to AlignedBuffer::kAlignment.
  std::vector<TensorView> values;
  // The memory that they are in, held, by ps task; null for one without
  // tensors.
  std::vector<std::shared_ptr<const char>> memory;
  // Those of tensors in pieces.
  std::vector<std::shared_ptr<const char>> joined;
};

// One worker's view of the parameters on all ps tasks: pulls them into and
// pushes gradients from the caller's memory, in parts, over every shard at
// once, again after a lost message with the same identity.
//
//   ParameterClient client(options, std::move(links));
//   RETURN_IF_ERROR(client.SetModel(tensors, placement));
//   client.SetEpoch(epoch, ps_incarnations);        // from Hello and Watch
//   RETURN_IF_ERROR(client.PullAndWait(values));
//   ... compute gradients ...
//   ASSIGN_OR_RETURN(PushResult result, client.PushAndWait(1, gradients));
//
// Thread-safe, but SetModel and SetEpoch are meant for between the steps: a
// transfer uses what was set when it started.
//
// Errors of every transfer: Aborted ("...fenced: ..."; the shard moved on: set
// the new epoch and pull), Unavailable after options.transfer.give_up_after,
// naming the ps task and the cause, and what a shard answers, with its name.
class ParameterClient {
 public:
  struct Options : ShardGroup::Options {
    // The codec of gradients; null: float32 as they are. Outlives the client.
    const Codec* codec = nullptr;
    // Whether what the codec takes from one push is added to the next
    // (PushEncoder). Then one push is under way at a time.
    bool error_feedback = false;
    // The codec of the values that steps are computed from: those that
    // BeginPull asks for and that a push brings; null: float32 as they are.
    // Outlives the client.
    const Codec* pull_codec = nullptr;
  };

  // `links` by ps task. REQUIRES: as many links as names, at least one.
  ParameterClient(Options options,
                  std::vector<std::unique_ptr<ParameterLink>> links);
  // Ends every transfer with Cancelled; their callbacks have run when it
  // returns. REQUIRES: not called from a callback.
  ~ParameterClient() = default;

  int num_shards() const { return shards_.size(); }
  // Loads the model, reads snapshots.
  ChiefClient& chief() { return chief_; }

  // The model of another namespace on the same ps tasks. It is used before the
  // client goes. Errors: NamespaceReader::Open's.
  absl::StatusOr<NamespaceReader> OpenNamespace(const std::string& space) {
    return NamespaceReader::Open(&shards_, space);
  }

  // One Hello, not repeated. `done` may run on any thread and must not block.
  void Hello(int ps_task, const HelloRequest& request,
             ReplyCallback<HelloReply> done);
  // The namespaces that a ps task has; wants no Hello. As that.
  void ListNamespaces(int ps_task, ReplyCallback<ListNamespacesReply> done);

  // The tensors, in creation order, and where they are; and the tables, which
  // are on every ps task, by number. Errors: InvalidArgument; also for tables
  // with a codec.
  absl::Status SetModel(absl::Span<const TensorDef> tensors,
                        const Placement& placement,
                        absl::Span<const TableDef> tables = {});

  // The fences of what follows. `ps_incarnations` by ps task. Parameters of
  // another epoch are owed no residual. With new fences the model is cut into
  // parts anew, as suits the links then; with the same ones the parts keep
  // their numbers, whatever has become of the links.
  void SetEpoch(int64_t model_epoch,
                absl::Span<const uint64_t> ps_incarnations);

  // Reads every parameter, one view a tensor, as float32 whatever the codec.
  // The views' memory is the client's until the end; received bytes are copied
  // once, into it. After an error its contents are a mixture. In synchronous
  // replication the `token` brings every shard to the update before its round
  // (a shard may be further); one without a round asks for what is there.
  absl::Status PullAndWait(absl::Span<const MutableTensorView> into,
                           const StepToken& token = {});
  // The same without waiting; `done` on any thread.
  void PullThen(absl::Span<const MutableTensorView> into,
                const StepToken& token, std::function<void(absl::Status)> done);

  // Reads rows of tables into the caller's memory, a table at most once in
  // `rows`; of a row that was never pushed to its first value. Asks the ps
  // tasks that have some, and waits. The token is that of PullAndWait. Returns,
  // by ps task, the version of the rows, for the push of what is computed from
  // them; kNotAsked of one that has none of them. Errors: InvalidArgument for a
  // table or sizes that cannot be, and those of a transfer.
  absl::StatusOr<std::vector<int64_t>> PullRows(
      absl::Span<const TableRows> rows, const StepToken& token = {});
  // The bytes of rows that were pulled: ids and values.
  int64_t pulled_row_bytes() const {
    absl::MutexLock lock(&mu_);
    return pulled_row_bytes_;
  }

  // A pull whose tensors are awaited one by one, with the codec. It ends before
  // the client does. Errors: InvalidArgument; those of the transfer when it is
  // awaited.
  absl::StatusOr<std::unique_ptr<Pull>> BeginPull(
      absl::Span<const MutableTensorView> into, const StepToken& token = {});

  // As BeginPull, for parameters that are read in place: waits for those of the
  // round, and brings no values.
  absl::StatusOr<std::unique_ptr<Pull>> BeginPullInPlace(
      const StepToken& token);

  // Parameters in place (asynchronous replication, pull: IN_PLACE, or
  // synchronous): where the shards keep them, for steps that read them there
  // from now until SetModel or SetEpoch. May block for seconds.
  // Errors: FailedPrecondition, Unimplemented, PermissionDenied and
  // InvalidArgument if some shard's cannot be read so; Aborted (fenced); others
  // may be transient.
  absl::StatusOr<ParametersInPlace> MapParameters(
      InPlaceOrder order = InPlaceOrder::kNone);
  // `holder` has the parameters from now on (DeviceParameters), until the next
  // Define; it outlives the client. UpdateOnDevice takes the place of pushes
  // then. May wait for a device. Errors: FailedPrecondition with several
  // shards or a tensor in pieces; those of ParameterLink::KeepOnDevice, Aborted
  // for fenced.
  absl::Status KeepOnDevice(DeviceParameters* holder);
  // The holder's gradients, computed from the values of `versions`, are the
  // update of `step`: as a push that sends nothing. Waits for the shard, not
  // for a device. Errors: FailedPrecondition if `versions` is of another model
  // epoch; those of ParameterLink::UpdateOnDevice, Aborted for fenced.
  absl::StatusOr<PushResult> UpdateOnDevice(int64_t step,
                                            const PulledVersions& versions);
  // Their versions now: as a pull, but without values.
  absl::StatusOr<std::shared_ptr<const PulledVersions>> PullVersions();

  // Sends the gradients of `step` (a delta for a STATE tensor, an empty view
  // for a FROZEN one), computed from the last successful pull. Nothing is
  // copied (with a codec each part is encoded once, when it leaves): gRPC reads
  // the gradients where they lie, so their memory must not change until the
  // end, which also waits for every buffer of gRPC that refers to it. Applied
  // exactly once, however often it is sent. Steps of one incarnation count from
  // 1 and only rise. `round` is that of the step's token; 0 without one. With
  // `into`, one view a tensor, the answers bring the parameters as they are
  // after this update, with the codec of pulls: a pull without a round trip of
  // its own. Only where updates are made at once (not in synchronous
  // replication). The memory is the client's until the end; after an error its
  // contents are a mixture.
  // `rows` of tables are part of the step. Without gradients of any tensor (no
  // views, and no round) the step has rows alone. Errors: also InvalidArgument
  // for a table, ids or sizes that cannot be, and a repeated id.
  absl::StatusOr<PushResult> PushAndWait(
      int64_t step, absl::Span<const TensorView> gradients, int64_t round = 0,
      absl::Span<const MutableTensorView> into = {}, const RowPush& rows = {});

  // A push whose gradients are still being computed: their memory is read when
  // they are released; so is `into` of a tensor its own memory until then. They
  // were computed from the values of `versions`; null: of those that came last.
  // The push ends before the client does. Rows leave with the last gradients.
  // Errors: as PushAndWait.
  absl::StatusOr<std::unique_ptr<Push>> BeginPush(
      int64_t step, int64_t round, absl::Span<const TensorView> gradients,
      absl::Span<const MutableTensorView> into = {},
      std::shared_ptr<const PulledVersions> versions = nullptr,
      const RowPush& rows = {});

  // Sends the parts of a push whose Finish has failed for want of an answer,
  // and which no shard has said to have, again: as the same parts, of which
  // each shard applies what it has not. One that is in another epoch by now
  // refuses them (Aborted, by Finish). REQUIRES: push->may_resume().
  void Resume(Push* push);

  // The factor of the learning rate of the pushes, and updates on a device,
  // from the next one on: as the step's token has it.
  void SetLearningRateFactor(double factor) {
    absl::MutexLock lock(&mu_);
    learning_rate_factor_ = factor;
  }

  // What the next push, or update on a device, says of the worker's progress
  // once its step is done (PushPart.counts); without this call nothing.
  void SetCounts(StepCounts counts) {
    absl::MutexLock lock(&mu_);
    counts_ = std::move(counts);
  }

  // Synchronous replication: the token of a step tells whether the push before
  // it is in an update; with error feedback it is wanted before the next push.
  void SettlePush(const StepToken& token);

 private:
  absl::StatusOr<std::unique_ptr<Pull>> MakePull(
      absl::Span<const MutableTensorView> into, const StepToken& token,
      const Codec* codec) const;
  void StartPull(Pull* pull, std::function<void(absl::Status)> done);
  absl::StatusOr<std::unique_ptr<Push>> MakePush(
      int64_t step, int64_t round, absl::Span<const TensorView> gradients,
      absl::Span<const MutableTensorView> into,
      std::shared_ptr<const PulledVersions> versions, const RowPush& rows);
  std::shared_ptr<Transfer> StartPush(
      Push* push, const std::vector<std::vector<int64_t>>& part_bytes,
      ShardGroup::PartsAre parts);
  // Values have come.
  void KeepVersions(std::shared_ptr<const PulledVersions> versions);
  double learning_rate_factor() {
    absl::MutexLock lock(&mu_);
    return learning_rate_factor_;
  }
  StepCounts PopCounts() {
    absl::MutexLock lock(&mu_);
    return std::exchange(counts_, {});
  }

  // Constant after construction.
  const Codec* const codec_;
  const Codec* const pull_codec_;

  // Taken before the shards' own.
  mutable absl::Mutex mu_;
  int64_t pulled_row_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The versions of the values that came last; null, or of another model, if
  // none have in this epoch.
  std::shared_ptr<const PulledVersions> pulled_versions_ ABSL_GUARDED_BY(mu_);
  // Of the next push.
  StepCounts counts_ ABSL_GUARDED_BY(mu_);
  // 0 stands for 1.
  double learning_rate_factor_ ABSL_GUARDED_BY(mu_) = 0;

  // Own synchronisation. Null without a codec.
  const std::unique_ptr<PushEncoder> encoder_;
  ChiefClient chief_;

  // Last: its transfers use all of the above.
  ShardGroup shards_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PARAMETER_CLIENT_H_
