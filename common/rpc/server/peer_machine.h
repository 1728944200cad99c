#ifndef COMMON_RPC_SERVER_PEER_MACHINE_H_
#define COMMON_RPC_SERVER_PEER_MACHINE_H_

#include "absl/strings/string_view.h"

namespace muster {

// Whether a peer, as gRPC names it ("ipv4:127.0.0.1:40312",
// "ipv6:%5B::1%5D:40312", "unix:", "inproc"), is on this machine: its address
// is loopback or one of this machine's. Behind a proxy of this machine all are.
// False for a name of another form.
bool IsPeerOfThisMachine(absl::string_view peer);

}  // namespace muster

#endif  // COMMON_RPC_SERVER_PEER_MACHINE_H_
