#include "common/rpc/channel_settings.h"

#include "common/rpc/loopback_sockets.h"
#include "common/rpc/protocol.h"
#include "grpc/impl/codegen/grpc_types.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"

namespace muster {

namespace {

void LimitSizes(grpc::ChannelArguments* arguments) {
  // A part and its header, as on the server.
  arguments->SetMaxReceiveMessageSize(kMaxPartBytes + kMaxHeaderBytes);
  arguments->SetMaxSendMessageSize(kMaxPartBytes + kMaxHeaderBytes);
  // The size limit acts after inflating; see server_settings.cc.
  arguments->SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments->SetInt(GRPC_ARG_MAX_METADATA_SIZE, 8 * 1024);
}

// A peer whose host vanished is noticed after 15 s, with and without a call on
// its way; gRPC's client does not ping by default, and a call would hang until
// its deadline.
void PingPeer(grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments->SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

// A ps that comes back is found within a breath.
void ReconnectSoon(const ChannelSettings& settings,
                   grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments->SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                    static_cast<int>(absl::ToInt64Milliseconds(
                        settings.max_reconnect_backoff)));
  // How long one attempt may take: 20 s by default, in which a host that was
  // down when it began is not asked again.
  arguments->SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings) {
  grpc::ChannelArguments arguments;
  // Channels of equal settings would share one connection, and a small control
  // message would wait behind the parts of a push.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  LimitSizes(&arguments);
  PingPeer(&arguments);
  ReconnectSoon(settings, &arguments);
  // gRPC's own retry keeps at most 256 KiB of a call, so it never repeats a
  // part; ours does, with the same identity.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A connection within the machine needs no pacing.
  UnpaceLoopback(address, &arguments);
  // Otherwise http_proxy in the environment catches the traffic to a ps.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace muster
