#ifndef COMMON_RPC_STATUS_CONVERSION_H_
#define COMMON_RPC_STATUS_CONVERSION_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace muster {

// The codes of both are equal numbers; messages stay as they are, except that
// ToGrpcStatus cuts one that would not fit into the trailing metadata. A hint
// to try again (retry_after.h) goes along as gRPC's RetryInfo; of a peer's
// details everything else is passed over.
absl::Status ToAbslStatus(const grpc::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace muster

#endif  // COMMON_RPC_STATUS_CONVERSION_H_
