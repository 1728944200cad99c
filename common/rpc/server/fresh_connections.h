#ifndef COMMON_RPC_SERVER_FRESH_CONNECTIONS_H_
#define COMMON_RPC_SERVER_FRESH_CONNECTIONS_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
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

// Connections whose first byte has not come. It tells those for tensors from
// those for gRPC, and TLS from plaintext; gRPC would hang up on the wrong one
// of them, and say nothing. A TLS client of a plaintext server is said; a
// plaintext client of a TLS server is also told, and goes no further. Used by
// one thread.
class FreshConnections {
 public:
  // With one more, the oldest is closed: idle strangers do not shut the port.
  static constexpr size_t kMost = 256;
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `take` gets those that gRPC is to have, `take_tensors` those that begin as
  // kTensorMagic does; all bytes are still to be read. Without `take_tensors`
  // the latter are closed, and kAny gives `take` all, at once. `clock` outlives
  // this.
  FreshConnections(Protocol protocol, Reporter reporter, const Clock* clock,
                   std::function<void(FileDescriptor)> take,
                   std::function<void(FileDescriptor)> take_tensors = nullptr);

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

  // Gives it on by its first byte; false, and it is closed, if there is none.
  bool Sort(FileDescriptor connection);
  void SortByFirst(char first, FileDescriptor connection);
  void CloseOldest();
  // Once in a while: it may come again and again. `last`: when it last did.
  void Warn(absl::string_view line, absl::Time* last);

  const Protocol protocol_;
  const Reporter reporter_;
  const Clock* const clock_;
  const std::function<void(FileDescriptor)> take_;
  const std::function<void(FileDescriptor)> take_tensors_;
  // The oldest first.
  std::vector<Connection> waiting_;
  int64_t closed_silent_ = 0;
  absl::Time warned_of_refused_ = absl::InfinitePast();
  absl::Time warned_of_silent_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_RPC_SERVER_FRESH_CONNECTIONS_H_
