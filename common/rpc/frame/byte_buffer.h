// Serialized messages as gRPC carries them.
#ifndef COMMON_RPC_FRAME_BYTE_BUFFER_H_
#define COMMON_RPC_FRAME_BYTE_BUFFER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/error_reason.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace muster {

inline grpc::ByteBuffer ToByteBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Errors: Internal (kDamaged) for a message that gRPC cannot read.
inline absl::StatusOr<std::string> BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) {
    return Damaged(absl::InternalError("gRPC cannot read the message"));
  }
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace muster

#endif  // COMMON_RPC_FRAME_BYTE_BUFFER_H_
