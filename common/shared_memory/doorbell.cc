#include "common/shared_memory/doorbell.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "common/base/spin_until.h"

namespace muster {
namespace {

// Bells that are taken at once; what is left wakes the next wait.
constexpr int kMaxBells = 64;

// Takes the bells that have rung. False if the peer is gone.
bool TakeBells(const FileDescriptor& socket) {
  for (int i = 0; i < kMaxBells; ++i) {
    char bell = 0;
    const ssize_t received =
        recv(socket.get(), &bell, sizeof(bell), MSG_DONTWAIT);
    if (received > 0) continue;
    if (received == 0) return false;
    return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

}  // namespace

RingEvent AwaitEntry(RingReader* ring, const FileDescriptor& socket,
                     absl::Duration limit) {
  if (SpinUntil([&] { return ring->HasEntry(); })) return RingEvent::kEntry;
  ring->StartSleep();
  bool alive = true;
  if (!ring->HasEntry()) {
    pollfd poll = {socket.get(), POLLIN | POLLRDHUP, 0};
    const int ready =
        ::poll(&poll, 1, static_cast<int>(absl::ToInt64Milliseconds(limit)));
    // An interrupted wait is a short one.
    if (ready > 0) {
      alive = TakeBells(socket) &&
              (poll.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) == 0;
    }
  }
  ring->EndSleep();
  if (ring->HasEntry()) return RingEvent::kEntry;
  return alive ? RingEvent::kTimeout : RingEvent::kPeerGone;
}

void RingBell(const FileDescriptor& socket) {
  const char bell = 1;
  // A full buffer holds bells enough.
  [[maybe_unused]] const ssize_t sent =
      send(socket.get(), &bell, sizeof(bell), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace muster
