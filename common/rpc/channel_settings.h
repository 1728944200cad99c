#ifndef COMMON_RPC_CHANNEL_SETTINGS_H_
#define COMMON_RPC_CHANNEL_SETTINGS_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"

namespace muster {

struct ChannelSettings {
  // The longest pause between two attempts to connect, but for gRPC's jitter of
  // a fifth. With the pause between two Hellos less than a second: so soon is a
  // ps found that listens.
  absl::Duration max_reconnect_backoff = absl::Milliseconds(300);
};

// Opens a channel to `address` ("host:port"), with a connection of its own:
// two channels to one address never share one. Connects lazily. The one place
// for channel settings: README.md has the table, the reasons stand beside each
// line of the code. REQUIRES: `credentials` is not null.
std::shared_ptr<grpc::Channel> OpenChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings = {});

}  // namespace muster

#endif  // COMMON_RPC_CHANNEL_SETTINGS_H_
