#ifndef COMMON_RPC_PEER_CHANNEL_H_
#define COMMON_RPC_PEER_CHANNEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/channel_settings.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"

namespace muster {

// The channel to a peer, which is opened anew when the peer answers that the
// certificate of this end has ended (ErrorReason::kCertificateEnded), and when
// a call's deadline passes while it is connected: after a damaged frame a
// server may answer pings, but no call. gRPC would keep the connection, with
// what was shown when it was made. Thread-safe.
class PeerChannel {
 public:
  using OpenFunction = std::function<std::shared_ptr<grpc::Channel>()>;

  explicit PeerChannel(OpenFunction open);
  // By OpenChannel.
  static OpenFunction Opener(
      const std::string& address,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const ChannelSettings& settings = {});

  PeerChannel(const PeerChannel&) = delete;
  PeerChannel& operator=(const PeerChannel&) = delete;

  std::shared_ptr<grpc::Channel> Get() const;

  // A call on `used` has failed so. Calls to come are on another channel, if
  // that is for the better.
  void OnFailure(const std::shared_ptr<grpc::Channel>& used,
                 const absl::Status& status);

 private:
  // Constant after construction.
  const OpenFunction open_;

  mutable absl::Mutex mu_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
  // The one before. Were it dropped when it is left, that might be on a thread
  // of gRPC's, and before anything was sent on the new one: see AliveCount
  // (worker/client/link).
  std::shared_ptr<grpc::Channel> left_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // COMMON_RPC_PEER_CHANNEL_H_
