#include "common/rpc/server/server_settings.h"

#include <algorithm>

#include "common/rpc/protocol.h"
#include "grpc/impl/codegen/compression_types.h"
#include "grpc/impl/codegen/grpc_types.h"

namespace muster {
namespace {

// A small cluster gets this much: the buffers of a few idle connections and
// one slow reader must not make gRPC shed load.
constexpr int64_t kMinQuotaBytes = int64_t{32} << 20;

// Twice what honest workers can have on its way, so that a pull and a push of
// each fit. Without a quota 256 MiB sent to a server whose limit is 4 MiB were
// buffered whole (270 MiB measured; 37 to 60 MiB with one of 32 MiB).
size_t QuotaBytes(const ServerSettings& settings) {
  const int64_t honest = 2 * std::max<int64_t>(settings.num_workers, 1) *
                         settings.in_flight_bytes_per_worker;
  return static_cast<size_t>(std::max(honest, kMinQuotaBytes));
}

}  // namespace

std::unique_ptr<BufferQuota> ApplyServerSettings(const ServerSettings& settings,
                                                 grpc::ServerBuilder* builder) {
  // A part and its header, not more; nothing legitimate is larger.
  builder->SetMaxReceiveMessageSize(kMaxPartBytes + kMaxHeaderBytes);
  builder->SetMaxSendMessageSize(kMaxPartBytes + kMaxHeaderBytes);

  // The size limit acts after inflating: 522 KB of gzip drove a server to
  // 557 MiB. Off, and each algorithm refused by name.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);

  // Bounds what the size limit does not.
  auto quota =
      std::make_unique<BufferQuota>(QuotaBytes(settings), settings.max_threads);
  builder->SetResourceQuota(quota->quota());

  // Clients ping every 10 s (channel_settings.cc); with gRPC's default of one
  // in 5 minutes the server would answer GOAWAY too_many_pings.
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Frees the connections of hosts that vanished.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);

  // Calls under way outlive it; the next ones are on a new connection.
  if (settings.max_connection_age != absl::InfiniteDuration()) {
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                                static_cast<int>(absl::ToInt64Milliseconds(
                                    settings.max_connection_age)));
  }

  // Limits for a hostile or broken peer: header memory, a handshake that never
  // ends (default 120 s), calls under way on a connection (a worker has a few
  // parts of each transfer there; what waits beyond costs only the sender).
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 * 1024);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 64);
  return quota;
}

}  // namespace muster
