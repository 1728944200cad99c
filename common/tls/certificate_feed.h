#ifndef COMMON_TLS_CERTIFICATE_FEED_H_
#define COMMON_TLS_CERTIFICATE_FEED_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file_descriptor.h"
#include "grpcpp/security/tls_certificate_provider.h"

namespace muster {

// Gives gRPC certificates, and new ones later. gRPC 1.51 takes new ones from
// files alone, and a pair that does not fit, half written, makes its server
// refuse everybody. So it reads files in memory here, which hold only what was
// checked, and change as a whole. Used by one thread at a time.
class CertificateFeed {
 public:
  // Errors: ResourceExhausted; Unavailable without /proc.
  static absl::StatusOr<std::unique_ptr<CertificateFeed>> Create(
      absl::string_view authority, absl::string_view chain,
      absl::string_view key);

  CertificateFeed(const CertificateFeed&) = delete;
  CertificateFeed& operator=(const CertificateFeed&) = delete;

  // Connections from about a second on have these; the others stay. The chain
  // and the key fit. Errors: ResourceExhausted.
  absl::Status Publish(absl::string_view authority, absl::string_view chain,
                       absl::string_view key);

  // Reads the files as long as credentials use it, not beyond this.
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider()
      const {
    return provider_;
  }

 private:
  CertificateFeed() = default;

  // Puts a file with `text` in the place of `at`.
  absl::Status Write(absl::string_view text, FileDescriptor* at);

  // The number of the contents, which is also the files' time: gRPC reads again
  // if that changed between its reads of the certificate and of the key.
  int version_ = 0;
  FileDescriptor authority_;
  // The chain and the key in one file.
  FileDescriptor identity_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

}  // namespace muster

#endif  // COMMON_TLS_CERTIFICATE_FEED_H_
