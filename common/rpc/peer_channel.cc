#include "common/rpc/peer_channel.h"

#include <utility>

#include "common/rpc/error_reason.h"

namespace muster {

PeerChannel::PeerChannel(OpenFunction open)
    : open_(std::move(open)), channel_(open_()) {}

PeerChannel::OpenFunction PeerChannel::Opener(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings) {
  return [address, credentials, settings] {
    return OpenChannel(address, credentials, settings);
  };
}

std::shared_ptr<grpc::Channel> PeerChannel::Get() const {
  absl::MutexLock lock(&mu_);
  return channel_;
}

void PeerChannel::OnFailure(const std::shared_ptr<grpc::Channel>& used,
                            const absl::Status& status) {
  const bool is_deaf =
      absl::IsDeadlineExceeded(status) &&
      used->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  if (!is_deaf && ReasonOf(status) != ErrorReason::kCertificateEnded) return;
  std::shared_ptr<grpc::Channel> dropped;  // goes without the lock
  absl::MutexLock lock(&mu_);
  // Many calls on one channel hear the same.
  if (used != channel_) return;
  dropped = std::exchange(left_, std::exchange(channel_, open_()));
}

}  // namespace muster
