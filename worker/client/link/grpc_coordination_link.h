#ifndef WORKER_CLIENT_LINK_GRPC_COORDINATION_LINK_H_
#define WORKER_CLIENT_LINK_GRPC_COORDINATION_LINK_H_

#include <memory>
#include <string>
#include <utility>

#include "common/rpc/channel_settings.h"
#include "common/rpc/link.h"
#include "grpcpp/security/credentials.h"
#include "worker/client/link/peer_failure.h"
#include "worker/client/link/unary_caller.h"

namespace muster {

// The CoordinationService of ps task 0 over gRPC, on a connection of its own: a
// Watch, which is also the heartbeat, never waits behind parts. Otherwise as
// GrpcParameterLink.
class GrpcCoordinationLink : public Link {
 public:
  GrpcCoordinationLink(
      const PeerName& peer,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const ChannelSettings& settings = {});

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    caller_.CallBytes(method, request, deadline, std::move(done));
  }

 private:
  UnaryCaller caller_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_GRPC_COORDINATION_LINK_H_
