#ifndef WORKER_CLIENT_PULL_H_
#define WORKER_CLIENT_PULL_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/codec/codec.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_window.h"

namespace muster {

// A pull under way, of which the tensors become ready one after another: those
// that were created first come first, as the forward pass wants them. Made by
// ParameterClient::BeginPull, whose contract it has otherwise. Thread-safe.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Pull> pull,
//                    client.BeginPull(into, token));
//   RETURN_IF_ERROR(pull->Await(0));
//   ... compute with tensor 0, while the others arrive ...
//   RETURN_IF_ERROR(pull->Finish());
//
// Destroyed before its end it is given up: nothing is written to the caller's
// memory any more.
class Pull {
 public:
  struct Options {
    std::shared_ptr<const ClientModel> model;
    // The step's token; none if it has no round.
    StepToken token;
    // The codec of the values on the way; null: float32 as they are.
    const Codec* codec = nullptr;
    // The values are read where the shards keep them: none come.
    bool in_place = false;
    // One a tensor; none in place.
    std::vector<MutableTensorView> into;
    // Outlives the pull.
    const Clock* clock = nullptr;
  };

  explicit Pull(Options options);
  // Returns when nobody writes to the caller's memory any more.
  ~Pull();

  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

  // Waits until all values of `tensor` are there. Errors: those of the pull,
  // which may come from any tensor.
  absl::Status Await(int tensor);
  // Whether Await would return now.
  bool IsReady(int tensor) const;

  // Waits for the end: as PullAndWait. As often as wanted.
  absl::Status Finish();

  // ---- Of a pull that Finish has found OK ---------------------------------

  // When the last byte was there; monotonic.
  absl::Time ended_at() const;
  std::shared_ptr<const PulledVersions> versions() const { return versions_; }

  // ---- For ParameterClient ------------------------------------------------

  const ClientModel& model() const { return *options_.model; }
  // Once; parts may have been sent, and the transfer have ended, before.
  void Start(std::shared_ptr<Transfer> transfer) {
    transfer_ = std::move(transfer);
  }
  // Asks for one part of `transfer` over `link`; Transfer::SendFunction.
  void Send(ParameterLink* link, Transfer* transfer,
            const TransferWindow::Send& send);
  // The transfer has ended.
  void End(const absl::Status& status);

 private:
  PullRequest MakeRequest(const TransferWindow::Send& send) const;
  // Writes a part's values to where they go, unless the link has.
  absl::Status Receive(const TransferWindow::Send& send,
                       const Frame<PullReply>& reply);
  bool IsReadyLocked(int tensor) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended_ || missing_[tensor] == 0;
  }

  // Constant after Start.
  const Options options_;
  std::shared_ptr<Transfer> transfer_;

  // Each part's is written by the answer to that part, before the end.
  const std::shared_ptr<PulledVersions> versions_;

  mutable absl::Mutex mu_;
  // Slices of each tensor that have not arrived.
  std::vector<int> missing_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status outcome_ ABSL_GUARDED_BY(mu_);
  absl::Time ended_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_PULL_H_
