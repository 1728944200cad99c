#ifndef COMMON_RPC_TCP_GREETING_H_
#define COMMON_RPC_TCP_GREETING_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/frame_sender.h"

namespace muster {

// The bytes of an offer's token (TcpOffer): 32 hexadecimal digits.
inline constexpr size_t kTensorTokenBytes = 32;

// The settings of both ends of a connection: no waiting for more to send,
// and a peer whose host vanished noticed within 15 s, as over gRPC.
void SetUpTensorSocket(int fd);

// The worker's end, until the ps has let it in: connects, shows the token of an
// offer, and waits for the answer.
struct TensorDial {
  // The address of the ps task, "host:port", and its name, for errors.
  std::string address;
  std::string task;
  std::string token;
  // The channel over the connected socket.
  std::function<absl::StatusOr<std::unique_ptr<ByteChannel>>(FileDescriptor)>
      open;
  absl::Duration patience = absl::Seconds(3);
  // Readable: it is given up, with Cancelled. Not owned.
  int stop_fd = -1;
};
// Blocks. Errors: Unavailable, also for a connection that is closed without an
// answer; DeadlineExceeded; FailedPrecondition if another program, or a proxy,
// is what answers; Unauthenticated; the ps's own.
absl::StatusOr<std::unique_ptr<ByteChannel>> DialForTensors(
    const TensorDial& dial);

// The ps's end, until the token is there. Never blocks. Used by one thread.
class AcceptedGreeting {
 public:
  // Called in the first turn, when no loop waits for the socket yet: without a
  // channel that is closed.
  using Open = std::function<absl::StatusOr<std::unique_ptr<ByteChannel>>(
      FileDescriptor)>;

  AcceptedGreeting(FileDescriptor socket, Open open);

  AcceptedGreeting(const AcceptedGreeting&) = delete;
  AcceptedGreeting& operator=(const AcceptedGreeting&) = delete;

  int fd() const { return fd_; }
  // Goes on as far as bytes are there; true when token() is whole. Errors:
  // those of the channel; InvalidArgument for who begins otherwise.
  absl::StatusOr<bool> Proceed();
  bool wants_to_send() const;

  absl::string_view token() const { return token_; }
  // After the token.
  std::unique_ptr<ByteChannel> ReleaseChannel() { return std::move(channel_); }

 private:
  absl::StatusOr<bool> ReadMagic();
  absl::StatusOr<bool> ReadToken();

  const int fd_;
  const Open open_;
  FileDescriptor socket_;
  std::string magic_;
  std::unique_ptr<ByteChannel> channel_;
  std::string token_;
};

// The answer to a token.
void AddWelcome(const absl::Status& status, FrameSender* sender);

}  // namespace muster

#endif  // COMMON_RPC_TCP_GREETING_H_
