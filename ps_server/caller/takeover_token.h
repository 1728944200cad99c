#ifndef PS_SERVER_CALLER_TAKEOVER_TOKEN_H_
#define PS_SERVER_CALLER_TAKEOVER_TOKEN_H_

#include <cstdint>

namespace muster {

// The number by which incarnation `next` of a task confirms that it is to take
// over from `current` (HelloReply.takeover). Never 0. `replaced` counts the
// incarnations of the task that have been replaced here before, so that the
// number of one takeover is of no use for any other: what a process that died
// had under way cannot confirm anything. Not a secret; a peer that lies could
// as well lie about its task.
uint64_t TakeoverToken(uint64_t current, uint64_t next, int64_t replaced);

}  // namespace muster

#endif  // PS_SERVER_CALLER_TAKEOVER_TOKEN_H_
