#include "worker/health_server.h"

#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/server_settings.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace muster {
namespace {

constexpr absl::Duration kPortPause = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    const std::string& address, const Clock& clock, absl::Duration port_wait) {
  grpc::EnableDefaultHealthCheckService(true);
  const absl::Time give_up = clock.Now() + port_wait;
  while (true) {
    grpc::ServerBuilder builder;
    ApplyServerSettings(ServerSettings(), &builder);
    int port = 0;
    // gRPC starts no server without a service of the application's; this one
    // answers Unimplemented to everything.
    auto nothing = std::make_unique<grpc::CallbackGenericService>();
    builder.RegisterCallbackGenericService(nothing.get());
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server != nullptr) {
      auto health = absl::WrapUnique(
          new HealthServer(std::move(nothing), std::move(server), port));
      health->SetServing(false);
      return health;
    }
    if (clock.Now() >= give_up) break;
    absl::Notification().WaitForNotificationWithTimeout(kPortPause);
  }
  return absl::UnavailableError(
      absl::StrCat("listen on ", address,
                   ": the port is taken, or the address is not this "
                   "machine's (tried for ",
                   absl::FormatDuration(port_wait),
                   "); `ss -ltnp` shows who holds it, --bind gives another"));
}

HealthServer::HealthServer(
    std::unique_ptr<grpc::CallbackGenericService> nothing,
    std::unique_ptr<grpc::Server> server, int port)
    : nothing_(std::move(nothing)), server_(std::move(server)), port_(port) {}

HealthServer::~HealthServer() {
  server_->Shutdown(std::chrono::system_clock::now());
}

void HealthServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

}  // namespace muster
