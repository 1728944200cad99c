#ifndef COMMON_RPC_STATUS_CONVERSION_H_
#define COMMON_RPC_STATUS_CONVERSION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"
#include "proto/status.pb.h"

namespace muster {

// The codes of both are equal numbers; messages stay as they are, except that
// ToGrpcStatus cuts one that would not fit into the trailing metadata. An
// error's reason (error_reason.h) and a hint to try again (retry_after.h) go
// along as gRPC's ErrorInfo and RetryInfo; everything else in a peer's details
// is passed over. An Unimplemented has details in any case: by them it is told
// from that of another gRPC server (peer_check.h).
absl::Status ToAbslStatus(const grpc::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same as a message, of at most 8 KiB. REQUIRES: !status.ok().
StatusDetails StatusToDetails(const absl::Status& status);
// From a peer. One without an error's code is told as an Internal error.
absl::Status StatusFromDetails(const StatusDetails& details);

// The message serialized, where tensors do not go over gRPC.
// REQUIRES: !status.ok().
std::string StatusToBytes(const absl::Status& status);
// From a peer. Bytes that are none are told as an Internal error.
absl::Status StatusFromBytes(absl::string_view bytes);

}  // namespace muster

#endif  // COMMON_RPC_STATUS_CONVERSION_H_
