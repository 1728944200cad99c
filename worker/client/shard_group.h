#ifndef WORKER_CLIENT_SHARD_GROUP_H_
#define WORKER_CLIENT_SHARD_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/link/timer_queue.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_plan.h"
#include "worker/client/transfer_window.h"

namespace muster {

// All shards of one model as one worker reaches them: the links, the model with
// the fences of its epoch, and the transfers on their way. Thread-safe.
class ShardGroup {
 public:
  struct Options {
    Sender sender;
    // "/job:ps/task:0", ... for messages; one a link.
    std::vector<std::string> ps_names;
    // The ps task in this process, in all-reduce; else kNoShard.
    int own_shard = kNoShard;
    TransferOptions transfer;
    // Bytes of tensors in one message; 0: what suits each link.
    int64_t max_part_bytes = 0;
    // Not owned; outlives the group.
    const Clock* clock = nullptr;
    // The same; null for a thread of the group's own.
    Timers* timers = nullptr;
    // Gets a line for the operator, on any thread: which ps task a transfer
    // waits for.
    Reporter reporter;
  };

  // `links` by ps task. REQUIRES: as many links as names, at least one.
  ShardGroup(Options options,
             std::vector<std::unique_ptr<ParameterLink>> links);
  // Ends every transfer with Cancelled; their callbacks have run when it
  // returns. REQUIRES: not called from a callback.
  ~ShardGroup();

  ShardGroup(const ShardGroup&) = delete;
  ShardGroup& operator=(const ShardGroup&) = delete;

  int size() const { return static_cast<int>(links_.size()); }
  ParameterLink& link(int shard) const { return *links_[shard]; }
  const std::string& name(int shard) const { return options_.ps_names[shard]; }
  const Clock& clock() const { return *options_.clock; }

  // See ParameterClient::SetModel.
  absl::Status SetModel(absl::Span<const TensorDef> tensors,
                        const Placement& placement,
                        absl::Span<const TableDef> tables = {});
  // See ParameterClient::SetEpoch. Returns whether the fences are new.
  bool SetEpoch(int64_t model_epoch,
                absl::Span<const uint64_t> ps_incarnations);
  // `from`, which is set still, is from now on a model whose parameters are
  // read elsewhere than where a pull writes. Errors: Aborted if it is not set.
  absl::Status SetInPlace(const std::shared_ptr<const ClientModel>& from);
  // The model that was set last; what begins with it keeps it.
  std::shared_ptr<const ClientModel> model() const;

  // Whether parts are sent at once or wait until they are opened.
  enum class PartsAre { kOpen, kClosed };

  // Runs a transfer of parts of these sizes, [ps task][part]; `done` on any
  // thread.
  std::shared_ptr<Transfer> Start(
      const std::vector<std::vector<int64_t>>& part_bytes, PartsAre parts,
      Transfer::SendFunction send, Transfer::DoneFunction done);
  // The same, waiting for the end.
  absl::Status Run(const std::vector<std::vector<int64_t>>& part_bytes,
                   Transfer::SendFunction send);

  // One message to each shard, call(shard, deadline, done), and the replies.
  // `bytes` by shard is of the tensors that it brings, or makes a shard touch:
  // the time for it grows with them; empty: none.
  template <typename Reply>
  absl::StatusOr<std::vector<Reply>> CallAll(
      const std::function<void(int, absl::Time, ReplyCallback<Reply>)>& call,
      const std::vector<int64_t>& bytes = {});

 private:
  // Cuts the model as options_ and the links want it. Errors: InvalidArgument.
  absl::Status Plan(ClientModel* model) const;
  // Twice a second while there are transfers: says which shards are silent.
  void LookLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LookForSilence();
  bool HasNoTransfers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return transfers_.empty();
  }

  // Constant after construction.
  const Options options_;

  mutable absl::Mutex mu_;
  // Shared with the transfers that were started with it.
  std::shared_ptr<const ClientModel> model_ ABSL_GUARDED_BY(mu_);
  // Also the seed of the transfer's pauses.
  uint64_t next_transfer_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, std::shared_ptr<Transfer>> transfers_
      ABSL_GUARDED_BY(mu_);
  bool looks_later_ ABSL_GUARDED_BY(mu_) = false;
  // Its end is seen by a timer that others run; the group's own are over before
  // anything else of it is.
  const std::shared_ptr<ShardGroup*> self_;

  // Own synchronisation. Links go first at destruction: they wait for the
  // callbacks, which use the timers.
  const std::unique_ptr<TimerQueue> own_timers_;
  Timers* const timers_;
  std::vector<std::unique_ptr<ParameterLink>> links_;
};

template <typename Reply>
absl::StatusOr<std::vector<Reply>> ShardGroup::CallAll(
    const std::function<void(int, absl::Time, ReplyCallback<Reply>)>& call,
    const std::vector<int64_t>& bytes) {
  // Shared with callbacks that may come after a failed transfer's end. Each
  // element is written by the one callback that is answered OK.
  auto replies = std::make_shared<std::vector<Reply>>(size());
  std::vector<std::vector<int64_t>> parts(size(), {0});
  for (size_t i = 0; i < bytes.size(); ++i) parts[i] = {bytes[i]};
  RETURN_IF_ERROR(Run(
      parts,
      [&call, replies](Transfer* transfer, const TransferWindow::Send& send) {
        call(send.shard, send.deadline,
             [replies, send, shared = transfer->shared_from_this()](
                 absl::StatusOr<Reply> reply) {
               const absl::Status status = reply.status();
               if (reply.ok()) (*replies)[send.shard] = *std::move(reply);
               shared->Answer(send, status);
             });
      }));
  return std::move(*replies);
}

}  // namespace muster

#endif  // WORKER_CLIENT_SHARD_GROUP_H_
