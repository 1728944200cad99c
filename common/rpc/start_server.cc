#include "common/rpc/start_server.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/listen_address.h"

namespace muster {
namespace {

constexpr absl::Duration kPortPause = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(
    const std::string& address, const PortWait& wait,
    absl::FunctionRef<std::unique_ptr<grpc::Server>()> serve) {
  const absl::Time give_up = wait.clock->Now() + wait.limit;
  bool said = wait.say == nullptr;
  while (true) {
    const absl::Status free = TryListen(address);
    if (free.ok()) {
      std::unique_ptr<grpc::Server> server = serve();
      if (server != nullptr) return server;
    }
    if (!free.ok() && !absl::IsUnavailable(free)) return free;
    const std::string why =
        free.ok() ? absl::StrCat("listen on ", address, ": gRPC refused")
                  : std::string(free.message());
    if (wait.clock->Now() >= give_up) {
      return absl::UnavailableError(absl::StrCat(
          why, " (tried for ", absl::FormatDuration(wait.limit), ")"));
    }
    if (!std::exchange(said, true)) {
      wait.say(absl::StrCat(why, "; trying again for ",
                            absl::FormatDuration(wait.limit)));
    }
    if (wait.latch->WaitFor(kPortPause).has_value()) {
      return absl::CancelledError(absl::StrCat(
          "listen on ", address, ": stopped while waiting for it"));
    }
  }
}

}  // namespace muster
