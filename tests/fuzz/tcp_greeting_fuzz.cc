// The first bytes of a connection for tensors, to either end. The input: which
// end, whether a header's checksum is mended, the size of pieces, the bytes.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tensor_magic.h"
#include "tests/common/rpc/tcp/memory_channel.h"
#include "tests/fuzz/fuzz.h"

namespace muster {
namespace {

constexpr size_t kCrc = 28;

absl::StatusOr<std::unique_ptr<ByteChannel>> Plain(FileDescriptor socket) {
  return MakePlainChannel(std::move(socket));
}

// A worker's bytes, to the ps, so many at a time.
void TryAccepted(absl::string_view bytes, size_t piece) {
  int ends[2];
  Want(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
       "sockets");
  FileDescriptor worker(ends[0]);
  AcceptedGreeting greeting(FileDescriptor(ends[1]), &Plain);
  const std::string good(kTensorMagic);
  const bool begins_well = bytes.substr(0, good.size()) == good;
  absl::StatusOr<bool> is_over = false;
  while (is_over.ok() && !*is_over && !bytes.empty()) {
    const absl::string_view next = bytes.substr(0, piece);
    Want(send(worker.get(), next.data(), next.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(next.size()),
         "bytes that are sent");
    bytes.remove_prefix(next.size());
    is_over = greeting.Proceed();
  }
  worker = FileDescriptor();
  // What was sent at once may take several turns.
  while (is_over.ok() && !*is_over) is_over = greeting.Proceed();
  Want(greeting.token().empty() || begins_well, "the magic");
  Want(!is_over.ok() || greeting.token().size() == kTensorTokenBytes,
       "a whole token");
}

struct Listener {
  FileDescriptor fd;
  std::string address;
};

Listener Listen() {
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  Want(bind(fd.get(), generic, size) == 0 && listen(fd.get(), 1) == 0 &&
           getsockname(fd.get(), generic, &size) == 0,
       "a listener");
  return {std::move(fd), absl::StrCat("127.0.0.1:", ntohs(address.sin_port))};
}

// A ps's bytes, to the worker, so many at a time.
void TryDialled(const std::string& bytes, size_t piece) {
  static const Listener& listener = *new Listener(Listen());
  TensorDial dial;
  dial.address = listener.address;
  dial.task = "/job:ps/task:0";
  dial.token = std::string(kTensorTokenBytes, 'a');
  dial.patience = absl::Hours(1);
  dial.open = [&](FileDescriptor socket)
      -> absl::StatusOr<std::unique_ptr<ByteChannel>> {
    // Closed at once, it keeps no port for a minute.
    const linger none = {1, 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    const FileDescriptor ps(accept(listener.fd.get(), nullptr, nullptr));
    auto channel = std::make_unique<MemoryChannel>(
        bytes, [piece] { return std::max(piece, kTensorTokenBytes); });
    channel->Close();
    return channel;
  };
  const auto channel = DialForTensors(dial);
  const absl::string_view head =
      absl::string_view(bytes).substr(0, kFrameHeaderBytes);
  const auto header = head.size() == kFrameHeaderBytes
                          ? DecodeFrameHeader(head)
                          : absl::InvalidArgumentError("short");
  const bool is_welcome =
      header.ok() && header->kind == 0 && header->data_bytes == 0 &&
      (header->fields_bytes == 0 || bytes.size() > kFrameHeaderBytes);
  Want(channel.ok() == is_welcome, channel.status().ToString());
}

}  // namespace

void TryInput(absl::string_view input) {
  const uint8_t way = TakeByte(&input);
  const size_t piece = 1 + TakeByte(&input) % 64;
  if (way % 2 == 0) return TryAccepted(input, piece);
  std::string bytes(input);
  if (way % 8 != 1 && bytes.size() >= kFrameHeaderBytes) {
    const absl::string_view head(bytes.data(), kCrc);
    absl::little_endian::Store32(&bytes[kCrc], Crc32c(head));
  }
  TryDialled(bytes, piece);
}

}  // namespace muster
