#ifndef WORKER_CLIENT_LINK_PEER_FAILURE_H_
#define WORKER_CLIENT_LINK_PEER_FAILURE_H_

#include <string>

#include "absl/status/status.h"

namespace muster {

// A peer, as messages name it.
struct PeerName {
  std::string task;     // "/job:ps/task:0"
  std::string address;  // "localhost:2222"
};

// Turns gRPC's words for a failed connection into one readable cause:
//   "/job:ps/task:0 at localhost:2222: connection refused; nothing listens
//   there yet"
// Only Unavailable and DeadlineExceeded change, and only their messages:
// others come from the peer itself ("fenced: ...") and are its own words.
absl::Status ExplainPeerFailure(const PeerName& peer,
                                const absl::Status& status);

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_PEER_FAILURE_H_
