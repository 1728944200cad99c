#ifndef WORKER_CLIENT_GRADUAL_PUSH_H_
#define WORKER_CLIENT_GRADUAL_PUSH_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/one_shot.h"
#include "worker/client/client_model.h"
#include "worker/client/push_outcome.h"
#include "worker/client/transfer.h"

namespace muster {

// A push of which the gradients become ready one after another: a part leaves
// when all its tensors are. Made by ParameterClient::BeginPush, whose contract
// it has otherwise. One thread.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<GradualPush> push,
//                    client.BeginPush(step, round, gradients));
//   push->Release(7);  // while the others are still computed
//   ASSIGN_OR_RETURN(PushOutcome outcome, push->Finish());
//
// Destroyed before Finish it is given up: nothing more is sent, and what has
// left is with the shards. In synchronous replication they never use it, since
// the step is not reported; in the other modes whole parts are applied, as when
// a worker dies in mid-push.
class GradualPush {
 public:
  // `clock` outlives this.
  GradualPush(const Clock* clock, std::shared_ptr<const ClientModel> model);
  // Returns when nobody refers to the gradients any more.
  ~GradualPush();

  GradualPush(const GradualPush&) = delete;
  GradualPush& operator=(const GradualPush&) = delete;

  // The gradient of `tensor` will not change any more, and where its new value
  // goes, if it is wanted, nobody reads or writes. Once for each.
  void Release(int tensor);

  // Some part has been released whole.
  bool has_left() const { return has_left_; }

  // Releases all that were not.
  void ReleaseOthers();

  // The same, and waits for the end: as PushAndWait. Once.
  absl::StatusOr<PushOutcome> Finish();

  // ---- For ParameterClient ------------------------------------------------

  // Once, before all else; the transfer's parts are closed.
  void Start(std::shared_ptr<Transfer> transfer) {
    transfer_ = std::move(transfer);
  }
  // The transfer has ended. On any thread.
  void End(absl::StatusOr<PushOutcome> outcome);

 private:
  const std::shared_ptr<const ClientModel> model_;
  std::vector<bool> released_;  // by tensor
  // Slices of each part whose tensors are not released, [ps task][part].
  std::vector<std::vector<int>> missing_;
  std::shared_ptr<Transfer> transfer_;
  bool has_left_ = false;
  bool finished_ = false;

  // Written once, before the notification.
  absl::StatusOr<PushOutcome> outcome_;
  OneShot ended_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_GRADUAL_PUSH_H_
