#include "tests/benchmark/data_plane/raw_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_buffer.h"
#include "tests/benchmark/data_plane/server_process.h"

namespace muster {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr char kCongestionControl[] = "cubic";

absl::Status Failed(const std::string& what) {
  return absl::InternalError(
      absl::StrCat("raw TCP: ", what, ": ", std::strerror(errno)));
}

// A socket; closed at destruction.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }

  absl::Status Send(const AlignedBuffer& from) const {
    for (size_t done = 0; done < from.size_bytes();) {
      const size_t chunk = std::min(kChunkBytes, from.size_bytes() - done);
      const ssize_t sent = send(fd_, from.data() + done, chunk, MSG_NOSIGNAL);
      if (sent <= 0) return Failed("send");
      done += static_cast<size_t>(sent);
    }
    return absl::OkStatus();
  }

  absl::Status Receive(AlignedBuffer* into) const {
    for (size_t done = 0; done < into->size_bytes();) {
      const size_t chunk = std::min(kChunkBytes, into->size_bytes() - done);
      const ssize_t got = recv(fd_, into->data() + done, chunk, 0);
      if (got <= 0) return Failed("receive");
      done += static_cast<size_t>(got);
    }
    return absl::OkStatus();
  }

 private:
  int fd_;
};

absl::StatusOr<Socket> OpenSocket() {
  Socket opened(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (opened.fd() < 0) return Failed("socket");
  const int on = 1;
  setsockopt(opened.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (setsockopt(opened.fd(), IPPROTO_TCP, TCP_CONGESTION, kCongestionControl,
                 sizeof kCongestionControl - 1) != 0) {
    return Failed("congestion control 'cubic' (modprobe tcp_cubic)");
  }
  return opened;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class RawTcp : public Workload {
 public:
  RawTcp(int64_t bytes, std::unique_ptr<ServerProcess> server, Socket socket)
      : server_(std::move(server)),
        socket_(std::move(socket)),
        gradient_(bytes),
        parameter_(bytes) {
    std::memset(gradient_.data(), 1, gradient_.size_bytes());
  }

  absl::Status Step(int) override {
    RETURN_IF_ERROR(socket_.Send(gradient_));
    return socket_.Receive(&parameter_);
  }

  absl::Status Check() override {
    if (std::memcmp(gradient_.data(), parameter_.data(),
                    gradient_.size_bytes()) == 0) {
      return absl::OkStatus();
    }
    return absl::InternalError("raw TCP: what came back differs");
  }

  int64_t bytes_per_step() const override {
    return 2 * static_cast<int64_t>(gradient_.size_bytes());
  }
  std::vector<pid_t> processes() const override { return {server_->pid()}; }

 private:
  const std::unique_ptr<ServerProcess> server_;
  // Closed before the server is waited for.
  const Socket socket_;
  AlignedBuffer gradient_;
  AlignedBuffer parameter_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeRawTcp(
    const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<ServerProcess> server,
      ServerProcess::Start(
          {"--serve=raw_tcp", absl::StrCat("--bytes=", options.bytes)}));
  const std::vector<std::string> parts = absl::StrSplit(server->address(), ':');
  int port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) {
    return absl::InternalError("raw TCP: the server gave no port");
  }
  ASSIGN_OR_RETURN(Socket socket, OpenSocket());
  const sockaddr_in address = Loopback(port);
  if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address),
              sizeof address) != 0) {
    return Failed("connect");
  }
  return std::make_unique<RawTcp>(options.bytes, std::move(server),
                                  std::move(socket));
}

absl::Status ServeRawTcp(const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(const Socket listener, OpenSocket());
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.fd(), any, size) != 0 || listen(listener.fd(), 1) != 0 ||
      getsockname(listener.fd(), any, &size) != 0) {
    return Failed("listen");
  }
  std::thread echo([&listener, bytes = options.bytes] {
    const Socket client(accept(listener.fd(), nullptr, nullptr));
    AlignedBuffer buffer(static_cast<size_t>(bytes));
    // Until the client closes its end.
    while (client.fd() >= 0 && client.Receive(&buffer).ok() &&
           client.Send(buffer).ok()) {
    }
  });
  ServeUntilInputEnds(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
  // Wakes an accept that nobody came to.
  shutdown(listener.fd(), SHUT_RDWR);
  echo.join();
  return absl::OkStatus();
}

}  // namespace muster
