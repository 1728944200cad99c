#ifndef COMMON_RPC_SERVER_START_SERVER_H_
#define COMMON_RPC_SERVER_START_SERVER_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/process/stop_latch.h"
#include "common/rpc/server/server_listener.h"
#include "grpcpp/server.h"

namespace muster {

struct PortWait {
  // The time for which a taken port is tried again: its last owner may be about
  // to end.
  absl::Duration limit = absl::Seconds(10);
  // Both outlive the call.
  const Clock* clock = nullptr;
  StopLatch* latch = nullptr;
  // Gets a line of this level, once, when the port has to be waited for; then
  // the listener's.
  Reporter reporter = {};
  Reporter::Level level = Reporter::kInfo;
};

// A server, and where its connections come in. The listener goes first: then
// the server shuts down with those that it has.
struct ListeningServer {
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<ServerListener> listener;
};

// Listens on `address`, once it is free, and calls `serve`, which is to build a
// server that has the listener (AddTo) and to start it, and gives null if gRPC
// refused, until there is a server. wait.clock outlives it.
// Errors: Unavailable, naming the address, for a port that stayed taken;
// InvalidArgument for an address that is not this machine's; Cancelled if the
// latch was stopped meanwhile.
absl::StatusOr<ListeningServer> StartServer(
    const std::string& address, const PortWait& wait,
    absl::FunctionRef<std::unique_ptr<grpc::Server>(ServerListener*)> serve);

}  // namespace muster

#endif  // COMMON_RPC_SERVER_START_SERVER_H_
