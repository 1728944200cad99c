#include "common/rpc/server/start_server.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr absl::Duration kPortPause = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<ListeningServer> StartServer(
    const std::string& address, const PortWait& wait,
    absl::FunctionRef<std::unique_ptr<grpc::Server>(ServerListener*)> serve) {
  const absl::Time give_up = wait.clock->Now() + wait.limit;
  bool said = false;
  while (true) {
    absl::StatusOr<std::unique_ptr<ServerListener>> listener =
        ServerListener::Listen(address);
    if (listener.ok()) {
      std::unique_ptr<grpc::Server> server = serve(listener->get());
      if (server != nullptr) {
        (*listener)->Start(wait.clock, wait.reporter);
        return ListeningServer{std::move(server), *std::move(listener)};
      }
    }
    const absl::Status& status = listener.status();
    if (!status.ok() && !absl::IsUnavailable(status)) return status;
    const std::string why =
        status.ok() ? absl::StrCat("listen on ", address, ": gRPC refused")
                    : std::string(status.message());
    if (wait.clock->Now() >= give_up) {
      return absl::UnavailableError(absl::StrCat(
          why, " (tried for ", absl::FormatDuration(wait.limit), ")"));
    }
    if (!std::exchange(said, true)) {
      wait.reporter.Report(wait.level,
                           absl::StrCat(why, "; trying again for ",
                                        absl::FormatDuration(wait.limit)));
    }
    if (wait.latch->WaitFor(kPortPause).has_value()) {
      return absl::CancelledError(absl::StrCat(
          "listen on ", address, ": stopped while waiting for it"));
    }
  }
}

}  // namespace muster
