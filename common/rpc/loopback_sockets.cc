#include "common/rpc/loopback_sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "common/cluster/address.h"
#include "grpc/support/sync.h"
#include "grpcpp/version_info.h"

// gRPC's way to a socket is public (ChannelArguments::SetSocketMutator), but
// what it takes is declared in none of its installed headers. These are the
// declarations of 1.51, to which the use below is confined.
enum grpc_fd_usage {
  GRPC_FD_CLIENT_CONNECTION_USAGE,
  GRPC_FD_SERVER_LISTENER_USAGE,
  GRPC_FD_SERVER_CONNECTION_USAGE,
};
struct grpc_mutate_socket_info {
  int fd;
  grpc_fd_usage usage;
};
struct grpc_socket_mutator_vtable {
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  bool (*mutate_fd_2)(const grpc_mutate_socket_info* info,
                      grpc_socket_mutator* mutator);
};
struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount refcount;
};
void grpc_socket_mutator_init(grpc_socket_mutator* mutator,
                              const grpc_socket_mutator_vtable* vtable);

namespace muster {
namespace {

constexpr bool kKnownGrpc =
    GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51;

bool IsLoopbackSocket(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    in_addr v4;
    std::memcpy(&v4, &reinterpret_cast<const sockaddr_in&>(address).sin_addr,
                sizeof(v4));
    return ntohl(v4.s_addr) >> 24 == 127;
  }
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool HasLoopbackPeer(int fd) {
  sockaddr_storage address;
  socklen_t size = sizeof(address);
  return getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         IsLoopbackSocket(address);
}

// One that the kernel lets this process have; else what it was.
void Unpace(int fd) {
  for (const char* name : {"cubic", "reno"}) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
                   static_cast<socklen_t>(std::strlen(name))) == 0) {
      return;
    }
  }
}

// gRPC calls it for each socket of a client that was told so.
bool OnSocket(const grpc_mutate_socket_info* info, grpc_socket_mutator*) {
  Unpace(info->fd);
  return true;  // or gRPC would close it
}

int Compare(grpc_socket_mutator*, grpc_socket_mutator*) { return 0; }
void Destroy(grpc_socket_mutator* mutator) { delete mutator; }

void SetMutator(grpc::ChannelArguments* arguments) {
  static constexpr grpc_socket_mutator_vtable kFunctions = {
      nullptr, &Compare, &Destroy, &OnSocket};
  if (!kKnownGrpc) return;
  auto mutator = std::make_unique<grpc_socket_mutator>();
  grpc_socket_mutator_init(mutator.get(), &kFunctions);
  arguments->SetSocketMutator(mutator.release());  // which owns it
}

}  // namespace

void UnpaceLoopback(const std::string& address,
                    grpc::ChannelArguments* arguments) {
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  if (parsed.ok() && IsLoopback(*parsed)) SetMutator(arguments);
}

void UnpaceLoopback(int fd) {
  if (HasLoopbackPeer(fd)) Unpace(fd);
}

}  // namespace muster
