#ifndef COMMON_RPC_START_SERVER_H_
#define COMMON_RPC_START_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/stop_latch.h"
#include "grpcpp/server.h"

namespace muster {

struct PortWait {
  // How long a taken port is tried again: its last owner may be about to end.
  absl::Duration limit = absl::Seconds(10);
  // Both outlive the call.
  const Clock* clock = nullptr;
  StopLatch* latch = nullptr;
  // Gets a line, once, when the port has to be waited for; may be null.
  std::function<void(absl::string_view)> say = nullptr;
};

// Calls `serve`, which is to build and start a server on `address` and gives
// null if gRPC refused, once `address` is free, until there is a server.
// Errors: Unavailable, naming the address, for a port that stayed taken;
// InvalidArgument for an address that is not this machine's; Cancelled if the
// latch was stopped meanwhile.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(
    const std::string& address, const PortWait& wait,
    absl::FunctionRef<std::unique_ptr<grpc::Server>()> serve);

}  // namespace muster

#endif  // COMMON_RPC_START_SERVER_H_
