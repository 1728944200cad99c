#ifndef WORKER_CLIENT_GRADUAL_PULL_H_
#define WORKER_CLIENT_GRADUAL_PULL_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/client/client_model.h"
#include "worker/client/part_id.h"
#include "worker/client/pulled_versions.h"
#include "worker/client/transfer.h"

namespace muster {

// A pull of which the tensors become ready one after another: those that were
// created first come first, as the forward pass wants them. Made by
// ParameterClient::BeginPull, whose contract it has otherwise. Thread-safe.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<GradualPull> pull,
//                    client.BeginPull(into, token));
//   RETURN_IF_ERROR(pull->Await(0));
//   ... compute with tensor 0, while the others arrive ...
//   RETURN_IF_ERROR(pull->Finish());
//
// Destroyed before its end it is given up: nothing is written to the caller's
// memory any more.
class GradualPull {
 public:
  // `clock` outlives this.
  GradualPull(const Clock* clock, std::shared_ptr<const ClientModel> model);
  // Returns when nobody writes to the caller's memory any more.
  ~GradualPull();

  GradualPull(const GradualPull&) = delete;
  GradualPull& operator=(const GradualPull&) = delete;

  // Waits until all values of `tensor` are there. Errors: those of the pull,
  // which may come from any tensor.
  absl::Status Await(int tensor);
  // What Await would return now; false if it would wait.
  bool IsReady(int tensor) const;

  // Waits for the end: as PullAndWait. As often as wanted.
  absl::Status Finish();

  // ---- Of a pull that Finish has found OK ---------------------------------

  // When the last byte was there; monotonic.
  absl::Time ended_at() const;
  std::shared_ptr<const PulledVersions> versions() const;

  // ---- For ParameterClient ------------------------------------------------

  // Once, before all else.
  void Start(std::shared_ptr<Transfer> transfer) {
    transfer_ = std::move(transfer);
  }
  // The part's values are in the caller's memory. Once for each, before End.
  void Arrive(PartId part);
  // The transfer has ended; the versions if it is OK.
  void End(const absl::Status& status,
           std::shared_ptr<const PulledVersions> versions);

 private:
  bool IsReadyLocked(int tensor) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended_ || missing_[tensor] == 0;
  }

  // Constant after Start.
  const Clock* const clock_;
  const std::shared_ptr<const ClientModel> model_;
  std::shared_ptr<Transfer> transfer_;

  mutable absl::Mutex mu_;
  // Slices of each tensor that have not arrived.
  std::vector<int> missing_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status outcome_ ABSL_GUARDED_BY(mu_);
  absl::Time ended_at_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const PulledVersions> versions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_GRADUAL_PULL_H_
