#ifndef COMMON_TLS_PEER_VERIFIER_H_
#define COMMON_TLS_PEER_VERIFIER_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/tls/peer_trust.h"
#include "grpcpp/security/tls_certificate_verifier.h"

namespace muster {

// Has gRPC ask a PeerTrust after each handshake, before the first byte of a
// call: gRPC's own check would name neither the peer nor the reason.
class PeerVerifier : public grpc::experimental::ExternalCertificateVerifier {
 public:
  // `side`: the peer's.
  PeerVerifier(std::shared_ptr<const PeerTrust> trust, TlsSide side,
               std::optional<Identity> wanted)
      : trust_(std::move(trust)), side_(side), wanted_(std::move(wanted)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> callback,
              grpc::Status* sync_status) override;
  // Nothing is ever under way.
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
  }

 private:
  const std::shared_ptr<const PeerTrust> trust_;
  const TlsSide side_;
  const std::optional<Identity> wanted_;
};

}  // namespace muster

#endif  // COMMON_TLS_PEER_VERIFIER_H_
