#ifndef WORKER_TASK_HEALTH_SERVER_H_
#define WORKER_TASK_HEALTH_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/buffer_quota.h"
#include "common/rpc/credentials.h"
#include "common/rpc/server/server_listener.h"
#include "common/rpc/server/start_server.h"
#include "common/rpc/server/unknown_calls.h"
#include "grpcpp/server.h"

namespace muster {

// gRPC's health service on the worker's own port: SERVING while it trains. No
// other service: a worker talks to ps tasks, nobody talks to it. Thread-safe.
class HealthServer {
 public:
  // Listens on "host:port"; a taken port is waited for. Errors: StartServer's.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Start(
      const std::string& address, const PortWait& wait,
      const TaskCredentials& credentials = InsecureCredentials());
  ~HealthServer();

  void SetServing(bool serving);

  // The port that it listens on, for port 0.
  int port() const { return port_; }

 private:
  HealthServer(std::unique_ptr<UnknownCalls> nothing,
               std::unique_ptr<BufferQuota> buffers, ListeningServer listening);

  const std::unique_ptr<UnknownCalls> nothing_;
  const std::unique_ptr<BufferQuota> buffers_;
  const std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerListener> listener_;
  const int port_;
};

// Starts the server of a task's options, WorkerOptions or EvaluatorOptions;
// null without a listen_address. Errors: HealthServer::Start's.
template <typename Options>
absl::StatusOr<std::unique_ptr<HealthServer>> StartHealth(
    const Options& options) {
  if (options.listen_address.empty()) return nullptr;
  PortWait wait;
  wait.clock = options.clock;
  wait.latch = options.latch;
  wait.reporter = options.reporter;
  return HealthServer::Start(options.listen_address, wait, options.credentials);
}

}  // namespace muster

#endif  // WORKER_TASK_HEALTH_SERVER_H_
