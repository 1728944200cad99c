#ifndef WORKER_CLIENT_PUSH_STATE_H_
#define WORKER_CLIENT_PUSH_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/encoded_parts.h"
#include "worker/client/pulled_versions.h"
#include "worker/client/push_encoder.h"
#include "worker/client/push_outcome.h"
#include "worker/client/tensor_view.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_window.h"

namespace muster {

// One push on its way: what its parts are made of, and what has become of them.
// Shared by the callbacks of the parts. Thread-safe.
class PushState : public std::enable_shared_from_this<PushState> {
 public:
  struct Options {
    std::shared_ptr<const ClientModel> model;
    // One a tensor; not to change before the transfer's end, but for those of
    // parts that were not opened yet.
    std::vector<TensorView> gradients;
    // Null without a codec, or else of `encoder`, which outlives the transfer.
    std::shared_ptr<EncodedParts> encoded;
    PushEncoder* encoder = nullptr;
    // That were pulled, [ps task][part].
    std::vector<std::vector<int64_t>> versions;
    // Where the new values go, one a tensor; empty: they are not asked for.
    // Those of a part are written once it was opened, before the transfer's
    // end.
    std::vector<MutableTensorView> into;
    // Of these on the way; null: float32 as they are.
    const Codec* values_codec = nullptr;
    int64_t step = 0;
    int64_t round = 0;
    // Outlives this.
    const Clock* clock = nullptr;
  };

  explicit PushState(Options options);

  // Sends one part of `transfer` over `link`; Transfer::SendFunction.
  void Send(ParameterLink* link, Transfer* transfer,
            const TransferWindow::Send& send);

  // The transfer has ended with `outcome`: the encoder, if there is one, is to
  // know.
  void TellEncoder(const absl::Status& outcome);

  // Of a transfer that came through, with so many repeated sends.
  PushOutcome Summarize(int64_t retries);

  const std::shared_ptr<const ClientModel>& model() const {
    return options_.model;
  }
  int64_t step() const { return options_.step; }

 private:
  struct PartTimes {
    absl::Time left;
    std::optional<absl::Time> acknowledged;
    // Somebody writes, or has written, the new values.
    bool has_values = false;
    // Of the new values, if the step reads them.
    int64_t new_version = 0;
  };

  PushPart MakeHeader(const TransferWindow::Send& send) const;
  // Where the bytes of one part lie.
  std::vector<TensorView> PiecesOf(const TransferWindow::Send& send) const;
  void OnReply(const TransferWindow::Send& send,
               const absl::StatusOr<Frame<PushReply>>& reply,
               Transfer* transfer);
  void Count(const TransferWindow::Send& send, const PushReply& reply);
  // Writes the new values of a part to where they go.
  absl::Status TakeValues(const TransferWindow::Send& send,
                          const Frame<PushReply>& reply);
  std::vector<SliceSend> Sends() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null if the new values were not asked for, and are not read in place.
  std::shared_ptr<const PulledVersions> NewVersions() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const Options options_;

  absl::Mutex mu_;
  PushOutcome outcome_ ABSL_GUARDED_BY(mu_);
  int64_t staleness_sum_ ABSL_GUARDED_BY(mu_) = 0;
  // [ps task][part]
  std::vector<std::vector<PartTimes>> times_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_PUSH_STATE_H_
