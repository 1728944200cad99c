#ifndef COMMON_RPC_SERVER_FRESH_CONNECTIONS_H_
#define COMMON_RPC_SERVER_FRESH_CONNECTIONS_H_

#include <poll.h>

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/reporter.h"

namespace muster {

// The protocol below gRPC that a server speaks.
enum class Protocol { kAny, kPlaintext, kTls };

// Connections whose first byte has not come. It tells TLS from plaintext; gRPC
// would hang up on the wrong one of them, and say nothing. A TLS client of a
// plaintext server is said; a plaintext client of a TLS server is also told,
// and goes no further. Used by one thread.
class FreshConnections {
 public:
  // More are not waited for.
  static constexpr size_t kMost = 256;
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `take` gets those that gRPC is to have. `clock` outlives this.
  FreshConnections(Protocol protocol, Reporter reporter, const Clock* clock,
                   std::function<void(FileDescriptor)> take);

  void Add(FileDescriptor connection);

  // Appends what to poll for.
  void AppendTo(std::vector<pollfd>* polls) const;
  // The polled ones, in that order, and those that have said nothing for
  // kPatience.
  void Look(absl::Span<const pollfd> polls);
  bool empty() const { return waiting_.empty(); }

 private:
  struct Connection {
    FileDescriptor fd;
    absl::Time give_up;
  };

  // One of which there is something to read, or the end.
  void Sort(FileDescriptor connection);
  // Once in a while: it may come again and again.
  void Say(absl::string_view line);

  const Protocol protocol_;
  const Reporter reporter_;
  const Clock* const clock_;
  const std::function<void(FileDescriptor)> take_;
  std::vector<Connection> waiting_;
  absl::Time said_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_RPC_SERVER_FRESH_CONNECTIONS_H_
