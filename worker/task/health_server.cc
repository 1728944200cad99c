#include "worker/task/health_server.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/rpc/server/server_settings.h"
#include "grpc/support/time.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"

namespace muster {

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    const std::string& address, const PortWait& wait,
    const TaskCredentials& credentials) {
  grpc::EnableDefaultHealthCheckService(true);
  // gRPC starts no server without a service of the application's. It can be
  // registered only once.
  std::unique_ptr<UnknownCalls> nothing;
  std::unique_ptr<BufferQuota> buffers;
  const auto serve = [&](ServerListener* listener) {
    nothing = std::make_unique<UnknownCalls>(
        "what listens here is no ps task of Muster, but a worker or evaluator, "
        "which answers about its health alone");
    grpc::ServerBuilder builder;
    buffers = ApplyServerSettings(ServerSettings(), &builder);
    builder.RegisterCallbackGenericService(nothing.get());
    listener->AddTo(&builder, credentials.server);
    return builder.BuildAndStart();
  };
  ASSIGN_OR_RETURN(ListeningServer server, StartServer(address, wait, serve));
  auto health = absl::WrapUnique(new HealthServer(
      std::move(nothing), std::move(buffers), std::move(server)));
  health->SetServing(false);
  return health;
}

HealthServer::HealthServer(std::unique_ptr<UnknownCalls> nothing,
                           std::unique_ptr<BufferQuota> buffers,
                           ListeningServer listening)
    : nothing_(std::move(nothing)),
      buffers_(std::move(buffers)),
      server_(std::move(listening.server)),
      listener_(std::move(listening.listener)),
      port_(listener_->port()) {}

HealthServer::~HealthServer() {
  listener_.reset();
  server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
}

void HealthServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

}  // namespace muster
