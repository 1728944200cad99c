#ifndef WORKER_CLIENT_LINK_GRPC_PARAMETER_LINK_H_
#define WORKER_CLIENT_LINK_GRPC_PARAMETER_LINK_H_

#include <memory>
#include <string>

#include "common/rpc/channel_settings.h"
#include "common/rpc/parameter_link.h"
#include "grpcpp/security/credentials.h"
#include "proto/shared_memory_service.pb.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/stream_caller.h"
#include "worker/client/link/unary_caller.h"

namespace muster {

// A ParameterLink over gRPC. Two connections to the ps: one with a long-lived
// stream for messages with tensors, one for unary calls with the others, so
// that a Hello never waits behind 1 MiB parts.
// Connects by itself, lazily and again after a loss; nothing is repeated here.
// The destructor cancels what is on its way and waits for its callbacks.
class GrpcParameterLink : public ParameterLink {
 public:
  GrpcParameterLink(
      const PeerName& peer,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const ChannelSettings& settings = {});

  void Hello(const HelloRequest& request, absl::Time deadline,
             ReplyCallback<HelloReply> done) override;
  void Define(const DefineRequest& request, absl::Time deadline,
              ReplyCallback<DefineReply> done) override;
  void Load(Frame<LoadPart> request, absl::Time deadline,
            ReplyCallback<LoadReply> done) override;
  void Seal(const SealRequest& request, absl::Time deadline,
            ReplyCallback<SealReply> done) override;
  void Pull(const PullRequest& request, absl::Time deadline,
            ReplyCallback<Frame<PullReply>> done) override;
  void Push(Frame<PushPart> request, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) override;
  void BeginSnapshot(const BeginSnapshotRequest& request, absl::Time deadline,
                     ReplyCallback<BeginSnapshotReply> done) override;
  void ReadSnapshot(const ReadSnapshotRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<SnapshotPart>> done) override;
  void EndSnapshot(const EndSnapshotRequest& request, absl::Time deadline,
                   ReplyCallback<EndSnapshotReply> done) override;

  // Where the ps offers memory to processes of its machine. Errors: also
  // Unimplemented if it offers none.
  void OfferSharedMemory(absl::Time deadline,
                         ReplyCallback<SharedMemoryOffer> done);

 private:
  UnaryCaller control_;
  StreamCaller data_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_GRPC_PARAMETER_LINK_H_
