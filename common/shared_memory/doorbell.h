#ifndef COMMON_SHARED_MEMORY_DOORBELL_H_
#define COMMON_SHARED_MEMORY_DOORBELL_H_

#include "absl/time/time.h"
#include "common/base/file_descriptor.h"
#include "common/shared_memory/slot_ring.h"

namespace muster {

enum class RingEvent { kEntry, kTimeout, kPeerGone };

// Waits until the ring has an entry: at first spinning for some microseconds,
// then asleep on the socket, which also tells at once that the peer has died
// or closed it. An entry that is there comes before the peer's end. Not longer
// than `limit`.
RingEvent AwaitEntry(RingReader* ring, const FileDescriptor& socket,
                     absl::Duration limit);

// Wakes the peer that sleeps on the other end. Does not block; a peer that is
// gone is left to AwaitEntry.
void RingBell(const FileDescriptor& socket);

}  // namespace muster

#endif  // COMMON_SHARED_MEMORY_DOORBELL_H_
