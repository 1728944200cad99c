// The one packet of either side before shared memory is used. The first byte
// chooses the side, and whether a descriptor comes with it.
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "common/shared_memory/handshake.h"
#include "common/shared_memory/local_socket.h"
#include "tests/fuzz/fuzz.h"

namespace muster {
namespace {

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
constexpr size_t kParameterBytes = 5000;

const MemorySegment& SomeMemory() {
  static const auto& memory =
      *new MemorySegment(*MemorySegment::Create(kParameterBytes));
  return memory;
}

// A worker's packet, to the ps.
void TryGreeting(absl::string_view packet, int fd) {
  int ends[2];
  Want(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0,
       "sockets");
  const FileDescriptor ps(ends[0]);
  {
    const FileDescriptor worker(ends[1]);
    Want(SendPacket(worker, packet, fd).ok(), "a packet that is sent");
  }
  const auto claim = AwaitClaim(ps, kToken);
  if (claim.ok()) {
    Want(packet.find(kToken) != absl::string_view::npos, "the token");
  }
}

// A ps's packet, to the next worker that connects.
void AnswerWith(const FileDescriptor& listener, absl::string_view packet,
                int fd) {
  pollfd poll = {listener.get(), POLLIN, 0};
  Want(::poll(&poll, 1, /*timeout=*/-1) == 1, "a connection");
  const FileDescriptor ps(
      accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  // Either is an error only if the worker has waited too long.
  AwaitClaim(ps, kToken).status().IgnoreError();
  SendPacket(ps, packet, fd).IgnoreError();
}

void TryWelcome(absl::string_view packet, int fd) {
  static const std::string& name = *new std::string(NewSecret());
  static const auto& listener = *new FileDescriptor(*ListenLocal(name));
  std::thread ps([&] { AnswerWith(listener, packet, fd); });
  const auto memory =
      JoinParameters(name, kToken, /*model_epoch=*/7, kParameterBytes);
  ps.join();
  if (memory.ok()) {
    Want(fd >= 0 && memory->size_bytes() == kParameterBytes, "that memory");
  }
}

// The same for a segment, whose memory is larger than any that comes.
void TrySegment(absl::string_view packet, int fd) {
  static const std::string& name = *new std::string(NewSecret());
  static const auto& listener = *new FileDescriptor(*ListenLocal(name));
  std::thread ps([&] { AnswerWith(listener, packet, fd); });
  Want(!JoinSegment(name, kToken).ok(), "an error");
  ps.join();
}

}  // namespace

void TryInput(absl::string_view input) {
  const uint8_t way = TakeByte(&input);
  const int fd = (way & 1) != 0 ? SomeMemory().fd() : -1;
  // One of no bytes is none.
  if (input.empty()) return;
  if (way / 2 % 3 == 0) TryGreeting(input, fd);
  if (way / 2 % 3 == 1) TryWelcome(input, fd);
  if (way / 2 % 3 == 2) TrySegment(input, fd);
}

}  // namespace muster
