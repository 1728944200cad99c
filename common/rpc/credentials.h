#ifndef COMMON_RPC_CREDENTIALS_H_
#define COMMON_RPC_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace muster {

// The proofs of who a task is, as a client and as a server, and its demands on
// others. Neither is ever null.
struct TaskCredentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  std::shared_ptr<grpc::ServerCredentials> server;
};

// Plaintext; anybody is let in.
TaskCredentials InsecureCredentials();

// Files in PEM form.
struct TlsFiles {
  // The certificate of the authority that signed every task's.
  std::string authority;
  std::string certificate;
  std::string key;
};

// Mutual TLS: both sides show a certificate of the authority, and the client
// wants the server's to be of the host that it dialled. Read once. Errors:
// those of reading, naming the file; what is in them shows at the first
// connection.
absl::StatusOr<TaskCredentials> MutualTlsCredentials(const TlsFiles& files);

}  // namespace muster

#endif  // COMMON_RPC_CREDENTIALS_H_
