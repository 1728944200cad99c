#ifndef WORKER_CLIENT_PULL_STATE_H_
#define WORKER_CLIENT_PULL_STATE_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/part_id.h"
#include "worker/client/pulled_versions.h"
#include "worker/client/tensor_view.h"
#include "worker/client/transfer.h"
#include "worker/client/transfer_window.h"

namespace muster {

// One pull on its way. Shared by the callbacks of its parts, each of which
// writes to memory of its own.
class PullState : public std::enable_shared_from_this<PullState> {
 public:
  struct Options {
    std::shared_ptr<const ClientModel> model;
    // Without a round: none.
    StepToken token;
    // Of the values on the way; null: float32 as they are.
    const Codec* codec = nullptr;
    // One a tensor.
    std::vector<MutableTensorView> into;
  };
  // A part's values are there; on any thread, before the transfer's end.
  using ArriveFunction = std::function<void(PartId)>;

  explicit PullState(Options options);

  // Asks for one part of `transfer` over `link`; Transfer::SendFunction.
  void Send(ParameterLink* link, Transfer* transfer,
            const TransferWindow::Send& send);

  // Before the first Send.
  void set_on_arrive(ArriveFunction on_arrive) {
    on_arrive_ = std::move(on_arrive);
  }

  const std::shared_ptr<const ClientModel>& model() const {
    return options_.model;
  }
  // When the transfer has come through.
  std::shared_ptr<const PulledVersions> versions() const { return versions_; }

 private:
  PullRequest MakeRequest(const TransferWindow::Send& send) const;
  absl::Status Take(const TransferWindow::Send& send,
                    const Frame<PullReply>& reply);

  const Options options_;
  const std::shared_ptr<PulledVersions> versions_;
  ArriveFunction on_arrive_ = [](PartId) {};
};

}  // namespace muster

#endif  // WORKER_CLIENT_PULL_STATE_H_
