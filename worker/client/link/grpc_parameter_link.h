#ifndef WORKER_CLIENT_LINK_GRPC_PARAMETER_LINK_H_
#define WORKER_CLIENT_LINK_GRPC_PARAMETER_LINK_H_

#include <memory>
#include <string>

#include "common/rpc/channel_settings.h"
#include "common/rpc/parameter_link.h"
#include "grpcpp/security/credentials.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/unary_caller.h"

namespace muster {

// A ParameterLink over gRPC, in unary calls. Two connections to the ps: one for
// messages with tensors, one for the others, so that a Hello never waits behind
// 1 MiB parts.
// Connects by itself, lazily and again after a loss; nothing is repeated here.
// The destructor cancels what is on its way and waits for its callbacks.
class GrpcParameterLink : public ParameterLink {
 public:
  GrpcParameterLink(
      const PeerName& peer,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const ChannelSettings& settings = {});

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline, ReplyCallback<std::string> done) override;
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;

 private:
  UnaryCaller control_;
  UnaryCaller data_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_GRPC_PARAMETER_LINK_H_
