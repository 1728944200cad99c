#ifndef COMMON_RPC_STATUS_CONVERSION_H_
#define COMMON_RPC_STATUS_CONVERSION_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace muster {

// The codes of both are equal numbers; messages stay as they are, except that
// ToGrpcStatus cuts one that would not fit into the trailing metadata.
absl::Status ToAbslStatus(const grpc::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace muster

#endif  // COMMON_RPC_STATUS_CONVERSION_H_
