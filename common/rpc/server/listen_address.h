#ifndef COMMON_RPC_SERVER_LISTEN_ADDRESS_H_
#define COMMON_RPC_SERVER_LISTEN_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file_descriptor.h"
#include "common/base/reporter.h"
#include "common/cluster/cluster_spec.h"
#include "proto/cluster.pb.h"

namespace muster {

// The address that a task listens on: `bind` if it is given (port 0: any free
// port), else its ClusterSpec address. Without `allow_insecure_network` only
// loopback will do: nothing is encrypted and nobody is asked who he is. Errors:
// InvalidArgument if it does not parse; Unauthenticated, with the ways out, for
// another machine's reach.
absl::StatusOr<std::string> ChooseListenAddress(
    absl::string_view cluster_address, absl::string_view bind,
    bool allow_insecure_network);

// Whether a task may connect to `address`, "host:port": the same rule.
absl::Status CheckConnectAddress(absl::string_view address,
                                 bool allow_insecure_network);

// The numbers of the addresses that a host's name stands for on this machine.
std::vector<std::string> LookUpHost(const std::string& host);

// Whether tasks on other hosts could connect to the one that listens at `bind`,
// or, if that is "", at its own ClusterSpec address: /etc/hosts gives a host's
// own name 127.0.1.1 by Debian's default. No port is opened. `reporter` hears
// of a `bind` that says loopback itself, as before a tunnel. Errors:
// InvalidArgument, with the ways out, if a name means loopback alone, and the
// name of a task on another host does not.
absl::Status CheckOthersCanCome(
    const ClusterSpec& cluster, const TaskId& task, absl::string_view bind = "",
    const Reporter& reporter = Reporter(),
    absl::FunctionRef<std::vector<std::string>(const std::string&)> look_up =
        LookUpHost);

// Sockets that listen on one port of this machine.
struct ListeningSockets {
  // One for each address of the name; not blocking.
  std::vector<FileDescriptor> sockets;
  int port = 0;
};

// Listens on all addresses of `address`, for this process alone; 0.0.0.0 is
// every IPv4 address, [::] every one of either kind. Port 0: any free one.
// Errors: Unavailable if the port is taken at one of them; InvalidArgument if
// no address is this machine's.
absl::StatusOr<ListeningSockets> ListenOn(absl::string_view address);

}  // namespace muster

#endif  // COMMON_RPC_SERVER_LISTEN_ADDRESS_H_
