#ifndef COMMON_RPC_SERVER_SERVER_SETTINGS_H_
#define COMMON_RPC_SERVER_SERVER_SETTINGS_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "common/rpc/buffer_quota.h"
#include "grpcpp/server_builder.h"

namespace muster {

struct ServerSettings {
  // Workers that may push at once, and the bytes each may have on its way
  // (its window times kMaxPartBytes). They size the memory quota.
  int num_workers = 1;
  int64_t in_flight_bytes_per_worker = int64_t{8} << 20;
  // The longest life of a connection; then its peer is asked to open another,
  // and what is under way goes on.
  absl::Duration max_connection_age = absl::InfiniteDuration();
  // Threads that gRPC may start for synchronous handlers.
  int max_threads = 64;
};

// Sets everything about a Muster server but where it listens (ServerListener),
// its credentials and services. The one place for it: README.md has the table,
// the reasons stand beside each line of the code. What it returns is held while
// the server serves.
[[nodiscard]] std::unique_ptr<BufferQuota> ApplyServerSettings(
    const ServerSettings& settings, grpc::ServerBuilder* builder);

}  // namespace muster

#endif  // COMMON_RPC_SERVER_SERVER_SETTINGS_H_
