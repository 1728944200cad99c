#ifndef COMMON_RPC_CREDENTIALS_H_
#define COMMON_RPC_CREDENTIALS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace muster {

// The proofs of who a task is, as a client and as a server, and its demands on
// others.
struct TaskCredentials {
  // For a channel to a task of a job, who has to prove to be that one. Never
  // null.
  std::function<std::shared_ptr<grpc::ChannelCredentials>(
      const std::string& job, int32_t index)>
      channel_to;
  std::shared_ptr<grpc::ServerCredentials> server;
  // The same for a connection without gRPC: over a connected socket, to a task
  // of a job, and from whoever has connected. Never null.
  std::function<absl::StatusOr<std::unique_ptr<ByteChannel>>(
      FileDescriptor socket, const std::string& job, int32_t index)>
      dial_over;
  std::function<absl::StatusOr<std::unique_ptr<ByteChannel>>(
      FileDescriptor socket)>
      accept_over;
  // Whether those who connect to the server have proved who they are.
  bool proves_callers = false;
  // Now, as certificates have it.
  std::function<absl::Time()> wall_time;
};

// Plaintext; anybody is let in, and taken for whom he says to be.
TaskCredentials InsecureCredentials();

}  // namespace muster

#endif  // COMMON_RPC_CREDENTIALS_H_
