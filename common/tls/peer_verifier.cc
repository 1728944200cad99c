#include "common/tls/peer_verifier.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

absl::string_view ViewOf(grpc::string_ref text) {
  return {text.data(), text.size()};
}

}  // namespace

bool PeerVerifier::Verify(
    grpc::experimental::TlsCustomVerificationCheckRequest* request,
    std::function<void(grpc::Status)> /*callback*/, grpc::Status* sync_status) {
  const absl::Status status =
      trust_->Check({ViewOf(request->peer_cert()),
                     ViewOf(request->peer_cert_full_chain()), side_},
                    wanted_);
  *sync_status = status.ok() ? grpc::Status::OK
                             : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                            std::string(status.message()));
  return true;
}

}  // namespace muster
