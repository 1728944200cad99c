#include "tests/worker/client/link/tensor_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tcp/greeting.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

void AwaitSocket(int fd, int16_t events) {
  pollfd one = {fd, events, 0};
  poll(&one, 1, -1);
}

// The channel of a greeting that is over; sends the answer to it.
std::unique_ptr<ByteChannel> Welcome(FileDescriptor socket,
                                     const absl::Status& answer,
                                     std::string* token) {
  AcceptedGreeting greeting(std::move(socket), [](FileDescriptor fd) {
    return MakePlainChannel(std::move(fd));
  });
  for (;;) {
    AwaitSocket(greeting.fd(), POLLIN);
    const absl::StatusOr<bool> is_over = greeting.Proceed();
    EXPECT_TRUE(is_over.ok()) << is_over.status();
    if (!is_over.ok()) return nullptr;
    if (*is_over) break;
  }
  if (token != nullptr) *token = std::string(greeting.token());
  std::unique_ptr<ByteChannel> channel = greeting.ReleaseChannel();
  FrameSender sender;
  AddWelcome(answer, &sender);
  EXPECT_TRUE(sender.Pump(channel.get()).ok());
  return channel;
}

}  // namespace

TensorPeer::TensorPeer(std::unique_ptr<ByteChannel> channel)
    : channel_(std::move(channel)), receiver_(&pool_, nullptr) {}

void TensorPeer::Await(int16_t events) const {
  AwaitSocket(channel_->fd(), events);
}

absl::StatusOr<ReceivedFrame> TensorPeer::Receive() {
  for (;;) {
    absl::StatusOr<std::optional<ReceivedFrame>> frame =
        receiver_.Next(channel_.get());
    if (!frame.ok()) return frame.status();
    if (frame->has_value()) return **std::move(frame);
    Await(POLLIN);
  }
}

void TensorPeer::Flush() {
  for (;;) {
    const auto progress = sender_.Pump(channel_.get());
    if (!progress.ok() || *progress == FrameSender::Progress::kDone) return;
    Await(POLLOUT);
  }
}

void TensorPeer::Answer(uint64_t call, absl::string_view fields,
                        absl::string_view data) {
  FrameHeader header;
  header.call = call;
  sender_.Add(header, fields, absl::Cord(data));
  Flush();
}

void TensorPeer::Refuse(uint64_t call, const absl::Status& status) {
  FrameHeader header;
  header.call = call;
  header.kind = static_cast<uint32_t>(status.code());
  sender_.Add(header, StatusToBytes(status), absl::Cord());
  Flush();
}

std::string TensorPeer::AnswerBytes(uint64_t call, absl::string_view fields,
                                    absl::string_view data) {
  FrameHeader header;
  header.call = call;
  header.fields_bytes = static_cast<uint32_t>(fields.size());
  header.data_bytes = data.size();
  return absl::StrCat(EncodeFrameHeader(header), fields, data);
}

void TensorPeer::SendBytes(absl::string_view bytes) {
  while (!bytes.empty()) {
    const iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
    const absl::StatusOr<size_t> sent =
        channel_->Send(absl::MakeConstSpan(&piece, 1));
    if (!sent.ok()) return;
    bytes.remove_prefix(*sent);
    if (*sent == 0) Await(POLLOUT);
  }
}

TensorServer::TensorServer()
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener_.get(), any, size), 0);
  EXPECT_EQ(listen(listener_.get(), 16), 0);
  EXPECT_EQ(getsockname(listener_.get(), any, &size), 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

FileDescriptor TensorServer::AcceptSocket() {
  return FileDescriptor(accept(listener_.get(), nullptr, nullptr));
}

void TensorServer::Close() { shutdown(listener_.get(), SHUT_RDWR); }

std::unique_ptr<TensorPeer> TensorServer::Accept(std::string* token) {
  FileDescriptor socket = AcceptSocket();
  if (!socket.valid()) return nullptr;
  std::unique_ptr<ByteChannel> channel =
      Welcome(std::move(socket), absl::OkStatus(), token);
  if (channel == nullptr) return nullptr;
  return std::make_unique<TensorPeer>(std::move(channel));
}

void TensorServer::AcceptAndRefuse(const absl::Status& status) {
  const auto channel = Welcome(AcceptSocket(), status, nullptr);
  // Until the other end has read it.
  AwaitSocket(channel->fd(), POLLIN);
}

}  // namespace muster
