#ifndef PS_SERVER_SERVICE_SERVE_CALL_H_
#define PS_SERVER_SERVICE_SERVE_CALL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/frame_codec.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace muster {

// The time when the caller stops waiting, on `clock` (the monotonic one).
inline absl::Time DeadlineOf(const grpc::CallbackServerContext& context,
                             const Clock& clock) {
  const gpr_timespec deadline =
      gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_MONOTONIC);
  if (gpr_time_cmp(deadline, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0) {
    return absl::InfiniteFuture();
  }
  const gpr_timespec left =
      gpr_time_sub(deadline, gpr_now(GPR_CLOCK_MONOTONIC));
  return clock.Now() + absl::Seconds(left.tv_sec) +
         absl::Nanoseconds(left.tv_nsec);
}

// Reads a message that came as raw bytes. Errors: InvalidArgument (kDamaged).
template <typename Request>
absl::StatusOr<Request> ParseRaw(const grpc::ByteBuffer& buffer) {
  Request request;
  absl::Cord data;
  RETURN_IF_ERROR(DecodeFrameInto(buffer, &request, &data));
  if (data.empty()) return request;
  return Damaged(
      absl::InvalidArgumentError("a request without tensors carries data"));
}

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SERVE_CALL_H_
