#include "worker/client/link/grpc_coordination_link.h"

namespace muster {
GrpcCoordinationLink::GrpcCoordinationLink(
    const PeerName& peer,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings)
    : caller_(peer, PeerChannel::Opener(peer.address, credentials, settings)) {}

}  // namespace muster
