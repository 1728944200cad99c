#ifndef TESTS_WORKER_CLIENT_LINK_TENSOR_SERVER_H_
#define TESTS_WORKER_CLIENT_LINK_TENSOR_SERVER_H_

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/tcp/frame_receiver.h"
#include "common/rpc/tcp/frame_sender.h"
#include "common/tensor/buffer_pool.h"

namespace muster {

// The ps's end of a connection for tensors, in a test's hands. Every call
// blocks. Used by one thread.
class TensorPeer {
 public:
  explicit TensorPeer(std::unique_ptr<ByteChannel> channel);

  // The next request. Errors: those of the channel.
  absl::StatusOr<ReceivedFrame> Receive();
  // Sends an answer, or as much of it as there is room for if nobody reads.
  void Answer(uint64_t call, absl::string_view fields,
              absl::string_view data = "");
  void Refuse(uint64_t call, const absl::Status& status);
  // An answer's bytes, for who sends them in pieces.
  static std::string AnswerBytes(uint64_t call, absl::string_view fields,
                                 absl::string_view data);
  void SendBytes(absl::string_view bytes);

 private:
  void Flush();
  void Await(int16_t events) const;

  BufferPool pool_;
  const std::unique_ptr<ByteChannel> channel_;
  FrameReceiver receiver_;
  FrameSender sender_;
};

// A listener on a free loopback port that does what a test says.
class TensorServer {
 public:
  TensorServer();

  // "127.0.0.1:port"
  const std::string& address() const { return address_; }

  // The next connection, as it is; waits.
  FileDescriptor AcceptSocket();
  // The next connection, let in after its greeting; with its token. Null if
  // there is none any more.
  std::unique_ptr<TensorPeer> Accept(std::string* token = nullptr);
  // The same, refused.
  void AcceptAndRefuse(const absl::Status& status);

  // From any thread: nothing is accepted any more.
  void Close();

 private:
  const FileDescriptor listener_;
  std::string address_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CLIENT_LINK_TENSOR_SERVER_H_
