#include "worker/client/link/grpc_coordination_link.h"

namespace muster {
GrpcCoordinationLink::GrpcCoordinationLink(
    const PeerName& peer,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings)
    : caller_(peer, OpenChannel(peer.address, credentials, settings)) {}

}  // namespace muster
