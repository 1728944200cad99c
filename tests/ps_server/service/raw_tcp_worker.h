#ifndef TESTS_PS_SERVER_SERVICE_RAW_TCP_WORKER_H_
#define TESTS_PS_SERVER_SERVICE_RAW_TCP_WORKER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tensor_magic.h"

namespace muster {

// The worker's end of a connection to a port of this machine.
inline FileDescriptor ConnectToLoopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  FileDescriptor worker(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  connect(worker.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  SetUpTensorSocket(worker.get());
  return worker;
}

// Both ends of a new TCP connection.
struct LoopbackPair {
  FileDescriptor worker;
  FileDescriptor ps;
};
inline LoopbackPair ConnectLoopback() {
  const FileDescriptor listening(
      socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  bind(listening.get(), generic, size);
  listen(listening.get(), 1);
  getsockname(listening.get(), generic, &size);
  LoopbackPair pair;
  pair.worker = ConnectToLoopback(ntohs(address.sin_port));
  pair.ps = FileDescriptor(
      accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  SetUpTensorSocket(pair.ps.get());
  return pair;
}

// A worker that may send anything, and waits a minute for what comes.
class RawTcpWorker {
 public:
  static constexpr uint32_t kTimeoutMs = 30000;

  struct Answer {
    FrameHeader header;
    // That of the header's code.
    absl::Status status;
    std::string fields;
    std::string data;
  };

  explicit RawTcpWorker(FileDescriptor socket) : socket_(std::move(socket)) {
    const timeval patience = {60, 0};
    setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  }

  int fd() const { return socket_.get(); }

  // False if the ps does not take them.
  bool SendBytes(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(sent);
    }
    return true;
  }
  bool Greet(absl::string_view token) {
    return SendBytes(absl::StrCat(kTensorMagic, token));
  }

  static std::string Encode(uint64_t call, DataMethod method,
                            const std::string& fields,
                            const std::string& data = "",
                            uint32_t timeout_ms = kTimeoutMs) {
    return absl::StrCat(EncodeFrameHeader({call, static_cast<uint32_t>(method),
                                           static_cast<uint32_t>(fields.size()),
                                           data.size(), timeout_ms}),
                        fields, data);
  }
  bool Send(uint64_t call, DataMethod method, const std::string& fields,
            const std::string& data = "") {
    return SendBytes(Encode(call, method, fields, data));
  }
  template <typename Header>
  bool Send(uint64_t call, DataMethod method, const Frame<Header>& request) {
    return Send(call, method, request.header.SerializeAsString(),
                std::string(request.data));
  }

  // The next frame; none if the ps has hung up.
  std::optional<Answer> Await() {
    std::string bytes;
    if (!Receive(kFrameHeaderBytes, &bytes)) return std::nullopt;
    Answer answer;
    answer.header = DecodeFrameHeader(bytes).value();
    if (!Receive(answer.header.fields_bytes, &answer.fields) ||
        !Receive(answer.header.data_bytes, &answer.data)) {
      return std::nullopt;
    }
    if (answer.header.kind != 0) {
      answer.status =
          absl::Status(static_cast<absl::StatusCode>(answer.header.kind),
                       StatusFromBytes(answer.fields).message());
    }
    return answer;
  }
  // Its status; Cancelled if the ps has hung up.
  absl::Status AwaitStatus() {
    const std::optional<Answer> answer = Await();
    return answer.has_value() ? answer->status : absl::CancelledError("EOF");
  }

 private:
  bool Receive(size_t size, std::string* bytes) {
    bytes->resize(size);
    for (size_t done = 0; done < size;) {
      const ssize_t received = recv(fd(), &(*bytes)[done], size - done, 0);
      if (received <= 0) return false;
      done += received;
    }
    return true;
  }

  FileDescriptor socket_;
};

}  // namespace muster

#endif  // TESTS_PS_SERVER_SERVICE_RAW_TCP_WORKER_H_
