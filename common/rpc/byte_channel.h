#ifndef COMMON_RPC_BYTE_CHANNEL_H_
#define COMMON_RPC_BYTE_CHANNEL_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"

namespace muster {

// One end of a connected socket that never blocks: bytes as they are
// (MakePlainChannel), or under TLS (common/tls). Who waits polls fd().
// Errors of every call: Unavailable once the peer is gone; Unauthenticated for
// a peer that is not believed. After one there is nothing but the destructor.
// One thread at a time; with `is_duplex` one that receives and one that sends.
class ByteChannel {
 public:
  virtual ~ByteChannel() = default;

  virtual int fd() const = 0;
  // Whether receiving and sending are apart from each other.
  virtual bool is_duplex() const = 0;

  // Goes on with the handshake, if there is one; true when it is over. Before
  // that nothing is received or sent.
  virtual absl::StatusOr<bool> Handshake() = 0;

  // Fills the pieces from the first one on as far as bytes are there. Returns
  // how many came: 0 if there are none for now. `pieces`: one or more, none of
  // them empty.
  virtual absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces) = 0;
  // The opposite: how many bytes were accepted; 0 if the socket is full.
  virtual absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) = 0;
  // Passes what Send has accepted to the socket. False if it is full.
  virtual absl::StatusOr<bool> Flush() = 0;

  // Bytes were taken from the socket that Receive has not given out: poll does
  // not tell of them.
  virtual bool has_received() const = 0;
  // The handshake, or a Receive that gave nothing, goes on when the socket can
  // be written to, not read.
  virtual bool wants_to_send() const = 0;

  // The peer's certificate in PEM form, after the handshake; "" without TLS.
  virtual std::string PeerCertificate() const = 0;
};

// `socket` is connected; from here on it does not block.
std::unique_ptr<ByteChannel> MakePlainChannel(FileDescriptor socket);

}  // namespace muster

#endif  // COMMON_RPC_BYTE_CHANNEL_H_
