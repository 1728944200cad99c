#ifndef COMMON_RPC_STATUS_CONVERSION_H_
#define COMMON_RPC_STATUS_CONVERSION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace muster {

// The codes of both are equal numbers; messages stay as they are, except that
// ToGrpcStatus cuts one that would not fit into the trailing metadata. A hint
// to try again (retry_after.h) goes along as gRPC's RetryInfo; of a peer's
// details everything else is passed over.
absl::Status ToAbslStatus(const grpc::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same where there is no gRPC (common/shared_memory): a serialized
// StatusDetails (proto/status.proto), of at most 8 KiB. REQUIRES: !status.ok().
std::string StatusToBytes(const absl::Status& status);
// From a peer. Bytes that are none are told as an Internal error.
absl::Status StatusFromBytes(absl::string_view bytes);

}  // namespace muster

#endif  // COMMON_RPC_STATUS_CONVERSION_H_
