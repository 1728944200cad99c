// Unix sockets of packets (SOCK_SEQPACKET) under abstract names: they are in
// no file system, exist in one network namespace, and go with their process.
#ifndef COMMON_SHARED_MEMORY_LOCAL_SOCKET_H_
#define COMMON_SHARED_MEMORY_LOCAL_SOCKET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/file_descriptor.h"

namespace muster {

// A packet, and the descriptor that came with it, or none.
struct Packet {
  std::string bytes;
  FileDescriptor fd;
};

// Listens under `name`. None of these sockets blocks.
// Errors: Unavailable, ResourceExhausted, InvalidArgument for a long name.
absl::StatusOr<FileDescriptor> ListenLocal(absl::string_view name);

// Connects to it. Errors: NotFound if nobody of this machine listens under
// that name; Unavailable, ResourceExhausted, InvalidArgument.
absl::StatusOr<FileDescriptor> ConnectLocal(absl::string_view name);

// OK if the process at the other end runs as the same user as this one.
// Errors: PermissionDenied.
absl::Status CheckPeerUser(const FileDescriptor& socket);

// Sends one packet, with the descriptor `fd` unless it is -1.
// Errors: Unavailable.
absl::Status SendPacket(const FileDescriptor& socket, absl::string_view bytes,
                        int fd = -1);

// Waits at most `limit` for a packet. Further descriptors of it are closed.
// Errors: DeadlineExceeded; Unavailable if the peer is gone; InvalidArgument
// for one of more than `max_bytes`; ResourceExhausted if this process has no
// descriptor left.
absl::StatusOr<Packet> ReceivePacket(const FileDescriptor& socket,
                                     size_t max_bytes, absl::Duration limit);

}  // namespace muster

#endif  // COMMON_SHARED_MEMORY_LOCAL_SOCKET_H_
