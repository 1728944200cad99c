#ifndef COMMON_RPC_LOOPBACK_SOCKETS_H_
#define COMMON_RPC_LOOPBACK_SOCKETS_H_

#include <string>

#include "grpcpp/support/channel_arguments.h"

namespace muster {

// Connections within this machine without a congestion control that paces. The
// system's own choice may be bbr, which waits on timers where there is nothing
// to wait for: with it 13.1 MB there and back took 1.4 times as much CPU time,
// and as long, as with cubic. Connections to other machines keep what the
// system has. Does nothing where it may not, or with a gRPC that it does not
// know (README.md).

// For a client of `address`, "host:port", if that is a loopback one
// (common/cluster/address.h).
void UnpaceLoopback(const std::string& address,
                    grpc::ChannelArguments* arguments);

// For a connection that a server has accepted, if its peer has such an address.
void UnpaceLoopback(int fd);

}  // namespace muster

#endif  // COMMON_RPC_LOOPBACK_SOCKETS_H_
