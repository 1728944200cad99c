#ifndef WORKER_CLIENT_PUSH_H_
#define WORKER_CLIENT_PUSH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/one_shot.h"
#include "common/codec/codec.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/encoded_parts.h"
#include "worker/client/push_encoder.h"
#include "worker/client/pushed_rows.h"
#include "worker/client/row_parts.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_window.h"

namespace muster {

// When a run of one tensor's values was on its way: all the values of the
// tensor that one message carries; or its rows of tables.
struct SliceSend {
  // In creation order; -1: rows of tables.
  int tensor = 0;
  // As float32.
  int64_t bytes = 0;
  // Given to the link (the last time, if it was sent again), and acknowledged
  // by the shard. Monotonic.
  absl::Time left;
  absl::Time acknowledged;
  // The message: a part of the step, for that ps task.
  int ps_task = 0;
  int part = 0;
};

// The outcome of one push, over all parts.
struct PushResult {
  // In updates between pull and apply.
  int64_t max_staleness = 0;
  double mean_staleness = 0;
  // Parts that had been applied by an earlier attempt.
  int64_t duplicate_parts = 0;
  // Sends after the first of each part.
  int64_t retries = 0;
  // Synchronous replication: a shard has made the update of that round without
  // this gradient; no shard uses it.
  bool late = false;
  // The version that was pulled, by ps task; the oldest of the parts pushed.
  std::vector<int64_t> pulled_versions;
  // The new values' versions, if these were asked for or are read in place;
  // else null.
  std::shared_ptr<const PulledVersions> new_versions;
  // The values' bytes, each part counted once: as they were sent, those of them
  // that went to other processes than this one, and as float32. Of rows their
  // ids, too.
  int64_t sent_bytes = 0;
  int64_t others_bytes = 0;
  int64_t float32_bytes = 0;
  // By ps task and part.
  std::vector<SliceSend> sends;
};

// A push under way, of which the gradients become ready one after another: a
// part leaves when all its tensors are. Made by ParameterClient::BeginPush,
// whose contract it has otherwise. One thread.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Push> push,
//                    client.BeginPush(step, round, gradients));
//   push->Release(7);  // while the others are still computed
//   ASSIGN_OR_RETURN(PushResult result, push->Finish());
//
// A Finish that fails for want of an answer leaves open what the shards have
// applied: ParameterClient::Resume sends the rest again, with the same
// identity, as long as they are in the same epoch, and Finish waits once more.
//
// Destroyed before that it is given up: nothing more is sent, and what has left
// is with the shards. In synchronous replication they never use it, since the
// step is not reported; in the other modes whole parts are applied, as when a
// worker dies in mid-push.
class Push {
 public:
  struct Options {
    std::shared_ptr<const ClientModel> model;
    // One a tensor, empty for a frozen one; not to change before the transfer's
    // end, but for those of parts that were not opened yet.
    std::vector<TensorView> gradients;
    // The rows of a model with tables. Their parts come behind those of
    // tensors.
    std::optional<PushedRows> rows;
    // No tensor has a gradient: the step has rows alone.
    bool rows_alone = false;
    // Null without a codec, or else of `encoder`, which outlives the transfer.
    std::shared_ptr<EncodedParts> encoded;
    PushEncoder* encoder = nullptr;
    // The versions that were pulled, [ps task][part].
    std::vector<std::vector<int64_t>> versions;
    // Where the new values go, one a tensor; empty: they are not asked for. A
    // frozen one has none.
    // Those of a part are written once it was opened, before the transfer's
    // end.
    std::vector<MutableTensorView> into;
    // The codec of these on the way; null: float32 as they are.
    const Codec* values_codec = nullptr;
    int64_t step = 0;
    int64_t round = 0;
    // As PushPart's.
    StepCounts counts;
    double learning_rate_factor = 0;
    // Outlives this.
    const Clock* clock = nullptr;
  };

  explicit Push(Options options);
  // Returns when nobody refers to the gradients any more.
  ~Push();

  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;

  // The gradient of `tensor` lies there, and has the size that it had.
  // REQUIRES: it was not released.
  void Place(int tensor, TensorView gradient) {
    options_.gradients[tensor] = gradient;
  }
  bool is_released(int tensor) const { return released_[tensor]; }

  // The gradient of `tensor` will not change any more, and where its new value
  // goes, if it is wanted, nobody reads or writes. Once for each.
  void Release(int tensor);

  // Some part has been released whole.
  bool has_left() const { return has_left_; }

  // Releases all that were not, and the rows.
  void ReleaseOthers();

  // The same, and waits for the end: as PushAndWait. Once, and once after each
  // ParameterClient::Resume.
  absl::StatusOr<PushResult> Finish();
  // Has Finish failed with Unavailable? Then the gradients, and where their new
  // values go, are the push's still.
  bool may_resume() const { return may_resume_; }

  // ---- For ParameterClient ------------------------------------------------

  const ClientModel& model() const { return *options_.model; }
  int64_t step() const { return options_.step; }
  // Once, before all that is above; the transfer's parts are closed.
  void Start(std::shared_ptr<Transfer> transfer) {
    transfer_ = std::move(transfer);
  }
  // The parts of the transfer, [ps task][part].
  std::vector<std::vector<int64_t>> PartBytes() const;
  // Before the Start of another transfer. Returns the parts of that one: those
  // that no shard has said to have. REQUIRES: may_resume().
  std::vector<std::vector<int64_t>> Resume();
  // Sends one part of `transfer` over `link`; Transfer::SendFunction.
  void Send(ParameterLink* link, Transfer* transfer,
            const TransferWindow::Send& send);
  // The result of a transfer that has ended with `outcome`, after so many
  // repeated sends. The encoder, if there is one, is told when the push cannot
  // be resumed any more.
  absl::StatusOr<PushResult> Conclude(const absl::Status& outcome,
                                      int64_t retries);
  // The last call of all: who waits may destroy this.
  void End(absl::StatusOr<PushResult> result);

 private:
  struct PartTimes {
    absl::Time left;
    std::optional<absl::Time> acknowledged;
    // Somebody writes, or has written, the new values.
    bool has_values = false;
    // The new values' version, if the step reads them.
    int64_t new_version = 0;
  };

  // The parts of tensors, frozen ones too, are before those of rows.
  int TensorParts(int shard) const {
    return static_cast<int>(options_.model->plan.parts[shard].size());
  }
  // Those of them that are pushed.
  int PushedTensorParts(int shard) const {
    return options_.rows_alone ? 0 : options_.model->plan.pushed_parts[shard];
  }
  int RowPartsOf(int shard) const {
    return options_.rows.has_value()
               ? static_cast<int>(options_.rows->parts.of(shard).size())
               : 0;
  }
  bool IsOfRows(int shard, int part) const {
    return part >= TensorParts(shard);
  }
  bool IsPushed(int shard, int part) const {
    return IsOfRows(shard, part) ||
           (!options_.rows_alone &&
            options_.model->plan.parts[shard][part].is_pushed());
  }
  // REQUIRES: IsOfRows.
  const RowParts::Part& RowsOf(int shard, int part) const {
    return options_.rows->parts.of(shard)[part - TensorParts(shard)];
  }
  int64_t PulledVersion(int shard, int part) const {
    return IsOfRows(shard, part) ? options_.rows->versions[shard]
                                 : options_.versions[shard][part];
  }
  // Whether the answer to a part is to bring the new values.
  bool WantsValues(const TransferWindow::Send& send) const {
    return !options_.into.empty() && !IsOfRows(send.shard, send.part);
  }

  // Calls visit(shard, part) for each part that is pushed.
  template <typename Visit>
  void ForEachPushed(const Visit& visit) const;
  PushPart MakeHeader(const TransferWindow::Send& send) const;
  void DescribeTensors(const PlannedPart& part, PushPart* header) const;
  // The bytes of one part; none if the transfer has ended.
  std::optional<absl::Cord> DataOf(Transfer* transfer,
                                   const TransferWindow::Send& send) const;
  // Where those of tensors lie.
  std::vector<TensorView> PiecesOf(const TransferWindow::Send& send) const;
  // Takes an answer. The transfer is held.
  void OnReply(const TransferWindow::Send& send,
               const absl::StatusOr<Frame<PushReply>>& reply,
               Transfer* transfer);
  void Count(const TransferWindow::Send& send, const PushReply& reply);
  // Writes the new values of a part to where they go, unless the link has.
  absl::Status Receive(const TransferWindow::Send& send,
                       const Frame<PushReply>& reply);
  void TellEncoder(const absl::Status& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The encoder waits for the end of a push that nobody has resumed.
  void GiveUp();
  void CountSentBytes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // As PushResult::pulled_versions.
  std::vector<int64_t> OldestVersions() const;
  std::vector<SliceSend> Sends() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null if the new values were not asked for, and are not read in place.
  std::shared_ptr<const PulledVersions> NewVersions() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The bytes of the values that the answers have brought.
  void CountBytes(PulledVersions* versions) const;

  // Constant after Start, but for each gradient until its part is opened.
  Options options_;
  std::shared_ptr<Transfer> transfer_;

  // Used by the caller's thread.
  std::vector<bool> released_;  // by tensor
  // Slices of each part whose tensors are not released, [ps task][part].
  std::vector<std::vector<int>> missing_;
  bool has_left_ = false;
  bool rows_released_ = false;
  bool finished_ = false;
  bool may_resume_ = false;

  absl::Mutex mu_;
  PushResult result_ ABSL_GUARDED_BY(mu_);
  int64_t staleness_sum_ ABSL_GUARDED_BY(mu_) = 0;
  // [ps task][part]
  std::vector<std::vector<PartTimes>> times_ ABSL_GUARDED_BY(mu_);
  // A transfer has failed, and the encoder was not told.
  bool owes_encoder_ ABSL_GUARDED_BY(mu_) = false;

  // Written once a transfer, before its notification.
  absl::StatusOr<PushResult> end_;
  std::optional<OneShot> ended_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PUSH_H_
