#ifndef COMMON_RPC_LISTEN_ADDRESS_H_
#define COMMON_RPC_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where a task listens: `bind` if it is given (port 0: any free port), else its
// ClusterSpec address. Without `allow_insecure_network` only loopback will do:
// nothing is encrypted and nobody is asked who he is.
// Errors: InvalidArgument if it does not parse; Unauthenticated, with the
// ways out, for another machine's reach.
absl::StatusOr<std::string> ChooseListenAddress(
    absl::string_view cluster_address, absl::string_view bind,
    bool allow_insecure_network);

// Whether a task may connect to `address`, "host:port": the same rule.
absl::Status CheckConnectAddress(absl::string_view address,
                                 bool allow_insecure_network);

// Why one cannot listen on `address`, for a message: tries it and says what
// the system answers. OK if one can.
// Errors: Unavailable if the port is taken; InvalidArgument if the address is
// not this machine's.
absl::Status TryListen(absl::string_view address);

}  // namespace muster

#endif  // COMMON_RPC_LISTEN_ADDRESS_H_
