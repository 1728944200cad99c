#include "common/rpc/credentials.h"

#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "grpc/grpc_security_constants.h"

namespace muster {

TaskCredentials InsecureCredentials() {
  return {grpc::InsecureChannelCredentials(),
          grpc::InsecureServerCredentials()};
}

absl::StatusOr<TaskCredentials> MutualTlsCredentials(const TlsFiles& files) {
  ASSIGN_OR_RETURN(const std::string authority, ReadFile(files.authority));
  ASSIGN_OR_RETURN(const std::string certificate, ReadFile(files.certificate));
  ASSIGN_OR_RETURN(const std::string key, ReadFile(files.key));

  grpc::SslCredentialsOptions client;
  client.pem_root_certs = authority;
  client.pem_private_key = key;
  client.pem_cert_chain = certificate;

  grpc::SslServerCredentialsOptions server(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  server.pem_root_certs = authority;
  server.pem_key_cert_pairs.push_back({key, certificate});

  return TaskCredentials{grpc::SslCredentials(client),
                         grpc::SslServerCredentials(server)};
}

}  // namespace muster
