#ifndef COMMON_SHARED_MEMORY_HANDSHAKE_H_
#define COMMON_SHARED_MEMORY_HANDSHAKE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/file_descriptor.h"
#include "common/shared_memory/memory_segment.h"

namespace muster {

// The time that either side waits for the other's one packet. A segment was
// made in 0.1 s on a machine with a load of 12.
inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(2);

// 128 random bits as 32 hexadecimal digits: names and tokens.
std::string NewSecret();

// The worker's side: connects to the socket, shows the token, and gets the
// segment.
struct SharedPeer {
  FileDescriptor socket;
  MemorySegment segment;
};
// Errors: NotFound if no such socket is on this machine; PermissionDenied for
// another user's; Unavailable, DeadlineExceeded, ResourceExhausted (try
// again); InvalidArgument for an answer that makes no sense.
absl::StatusOr<SharedPeer> JoinSegment(absl::string_view socket_name,
                                       absl::string_view token);

// The same for the memory in which the ps keeps the parameters of a model
// epoch, of this size; to read. Errors: as above, and what the ps refuses with.
absl::StatusOr<MemorySegment> JoinParameters(absl::string_view socket_name,
                                             absl::string_view token,
                                             int64_t model_epoch,
                                             int64_t size_bytes);

// The wish of a worker that has shown the token.
struct SegmentClaim {
  // The parameters of this model epoch; none: a segment of its own.
  std::optional<int64_t> parameters_of;
};

// The ps's side: waits for the token on an accepted socket.
// Errors: PermissionDenied for another user or token; InvalidArgument,
// Unavailable, DeadlineExceeded, ResourceExhausted.
absl::StatusOr<SegmentClaim> AwaitClaim(const FileDescriptor& socket,
                                        absl::string_view token);
// The same where each worker was given a token of its own: whether it is one.
absl::StatusOr<SegmentClaim> AwaitClaim(
    const FileDescriptor& socket,
    absl::FunctionRef<bool(absl::string_view token)> is_known);

// Gives the peer a new segment. Errors: Unavailable, ResourceExhausted.
absl::StatusOr<MemorySegment> OfferSegment(const FileDescriptor& socket);

// Gives the peer the memory of parameters. Errors: Unavailable.
absl::Status OfferParameters(const FileDescriptor& socket,
                             const MemorySegment& parameters);

// Tells the peer why it gets none. Errors: Unavailable.
absl::Status RefuseClaim(const FileDescriptor& socket, const absl::Status& why);

}  // namespace muster

#endif  // COMMON_SHARED_MEMORY_HANDSHAKE_H_
